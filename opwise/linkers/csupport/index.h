#ifndef OW_INDEX_H
#define OW_INDEX_H

#include "runtime.h"

#endif
