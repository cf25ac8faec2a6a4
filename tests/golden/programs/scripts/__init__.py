"""Whole scripts as people wrote them for Theano: each trains a model and prints how it goes.

A script imports theano by itself and has a function `main` that returns what was learned. The
results of the default mode are recorded; under every other mode the script must give the same.
"""

import contextlib
import importlib
import io

from ..register import LOOSE, add_program

# The flag floatX that a script is recorded under.
SCRIPTS = {
    "batch_norm": "float64",
    "c_ops": "float32",
    "contractive_autoencoder": "float64",
    "denoising_autoencoder": "float32",
    "gan": "float32",
    "gaussian_process": "float64",
    "hessian_free": "float64",
    "hierarchical_softmax": "float32",
    "hmc": "float64",
    "ica": "float64",
    "kmeans": "float64",
    "linear_crf": "float64",
    "linear_svm": "float32",
    "logistic_sgd": "float64",
    "matrix_factorisation": "float32",
    "mixture_density": "float64",
    "mlp_dropout": "float64",
    "nade": "float32",
    "op_from_graph": "float64",
    "rbm": "float64",
    "sparse_logistic": "float64",
    "stacked_autoencoder": "float64",
    "text_classifier": "float64",
    "tsne": "float64",
    "vae": "float64",
    "word2vec": "float64",
}

PREFIX = "scripts."


def _run(module):
    def run(theano, T, np):
        script = importlib.import_module(f"{__name__}.{module}")
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            results = script.main()
        return {"printed": printed.getvalue().splitlines(), "results": results}

    return run


for _name, _floatx in SCRIPTS.items():
    add_program(PREFIX + _name, _run(_name), _floatx, LOOSE)
