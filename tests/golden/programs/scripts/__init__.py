"""Whole scripts as people wrote them for Theano: each trains a model and prints how it goes.

A script imports theano by itself and has a function `main` that returns what was learned. The
results of the default mode are recorded; under every other mode the script must give the same.
"""

import contextlib
import importlib
import io

from ..register import LOOSE, SINGLE, add_program

# The flag floatX that a script is recorded under.
SCRIPTS = {
    "adaptive_steps": "float64",
    "alexnet_toy": "float64",
    "all_conv": "float64",
    "attention_decoder": "float64",
    "batch_norm": "float64",
    "beam_search": "float64",
    "bidirectional_rnn": "float64",
    "bold_driver": "float64",
    "c_ops": "float32",
    "char_rnn": "float64",
    "contractive_autoencoder": "float64",
    "conv3d": "float64",
    "conv_autoencoder": "float64",
    "conv_mlp": "float64",
    "conv_rbm": "float64",
    "ctc_loss": "float64",
    "denoising_autoencoder": "float32",
    "dqn": "float64",
    "edit_distance": "float64",
    "folds": "float64",
    "gan": "float32",
    "gaussian_process": "float64",
    "gru_adding": "float64",
    "hessian_free": "float64",
    "hessian_free_scan": "float64",
    "hierarchical_softmax": "float32",
    "hmc": "float64",
    "hmc_scan": "float64",
    "hmm": "float64",
    "ica": "float64",
    "iterations": "float64",
    "kalman": "float64",
    "kmeans": "float64",
    "langevin": "float64",
    "lenet": "float64",
    "linear_crf": "float64",
    "linear_svm": "float32",
    "logistic_sgd": "float64",
    "lstm_classifier": "float64",
    "lyapunov": "float64",
    "matrix_factorisation": "float32",
    "memory_read": "float64",
    "mixture_density": "float64",
    "mlp_dropout": "float64",
    "nade": "float32",
    "op_from_graph": "float64",
    "particle_filter": "float64",
    "piecewise": "float64",
    "rbm": "float64",
    "rbm_pcd": "float64",
    "rk4_pendulum": "float64",
    "rnn_rbm": "float64",
    "saliency": "float64",
    "sentence_cnn": "float64",
    "sparse_logistic": "float64",
    "spatial_transformer": "float64",
    "stacked_autoencoder": "float64",
    "text_classifier": "float64",
    "texture": "float64",
    "tsne": "float64",
    "unet": "float64",
    "vae": "float64",
    "word2vec": "float64",
}

# Scripts whose training amplifies roundings more than a millionfold.
AMPLIFYING = {
    "char_rnn", "conv_autoencoder", "gru_adding", "hessian_free_scan", "memory_read", "unet",
}  # fmt: skip

# Scripts of names that make opwise warn.
OUTDATED = {"conv_mlp", "sentence_cnn"}

#: what scripts with loops and convolutions have to reach: {script: {result: (lowest, highest)}};
#: accuracies, overlaps, explained variances and losses that are left are parts of 1, gains are of
#: log-likelihoods, gaps of energies, others are distances
FIGURES = {
    "adaptive_steps": {"off": (0, 1e-3)},
    "alexnet_toy": {"accuracy": (0.9, 1)},
    "all_conv": {"accuracy": (0.95, 1)},
    "attention_decoder": {"right": (0.99, 1)},
    "beam_search": {"gap": (0, 1e-9), "exact": (-1e-9, 1e-9)},
    "bidirectional_rnn": {"accuracy": (0.9, 1)},
    "bold_driver": {"accuracy": (0.95, 1)},
    "char_rnn": {"right": (1, 1)},
    "conv3d": {"accuracy": (0.9, 1)},
    "conv_autoencoder": {"explained": (0.8, 1)},
    "conv_mlp": {"accuracy": (0.9, 1)},
    "conv_rbm": {"right": (0.9, 1), "gap": (8, 30)},
    "ctc_loss": {"right": (1, 1)},
    "dqn": {"caught": (0.85, 1)},
    "edit_distance": {"right": (1, 1)},
    "gru_adding": {"explained": (0.5, 1)},
    "hmc_scan": {"off": (0, 0.25), "acceptance": (0.9, 1)},
    "hmm": {"right": (0.8, 1)},
    "iterations": {"off": (0, 1e-9), "distance": (0, 1e-9)},
    "langevin": {"off": (0, 0.1)},
    "lenet": {"accuracy": (0.95, 1)},
    "lstm_classifier": {"accuracy": (0.95, 1)},
    "lyapunov": {"off": (0, 1e-9)},
    "memory_read": {"right": (0.7, 1)},
    "particle_filter": {"error": (0, 0.6)},
    "rbm_pcd": {"CD-3 gain": (3, 9), "PCD-5 gain": (3, 9)},
    "rk4_pendulum": {"drift": (0, 1e-5), "error_back": (0, 1e-4)},
    "rnn_rbm": {"gain": (1.5, 5)},
    "saliency": {"accuracy": (0.9, 1)},
    "sentence_cnn": {"accuracy": (0.95, 1)},
    "spatial_transformer": {"accuracy": (0.9, 1), "off": (0, 1e-06)},
    "texture": {"left": (0, 0.01)},
    "unet": {"overlap": (0.75, 1)},
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
    _tolerance = SINGLE if _name in AMPLIFYING else LOOSE
    add_program(PREFIX + _name, _run(_name), _floatx, _tolerance)
