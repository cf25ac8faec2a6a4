#ifndef OW_REDUCE_H
#define OW_REDUCE_H

#include "runtime.h"

#endif
