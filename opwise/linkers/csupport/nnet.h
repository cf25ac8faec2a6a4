#ifndef OW_NNET_H
#define OW_NNET_H

#include "runtime.h"

#endif
