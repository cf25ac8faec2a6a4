"""The formats of matrices that ``theano.sparse.basic`` lists for programs."""

import scipy.sparse

_mtypes = [scipy.sparse.csc_matrix, scipy.sparse.csr_matrix]
_mtype_to_str = {scipy.sparse.csc_matrix: "csc", scipy.sparse.csr_matrix: "csr"}
