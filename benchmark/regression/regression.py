"""Logistic regression as a theano Module, trained under the mode named on the command line.

    python -m benchmark.regression.regression PROFILE_MODE

prints the cost as it falls, the accuracy on held-out rows, where the time went, and what the
Python and the C linker differ in. Costs are compared with the same training by hand in numpy.

    python benchmark/regression/regression.py --diff cpu cuda

trains on the CPU and on the GPU, and prints what the move gained.
"""

from __future__ import annotations

import argparse
import importlib
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

if __name__ == "__main__":  # as a script it is not a part of the package that it imports
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import theano
import theano.tensor as T
from benchmark.regression import reference
from benchmark.regression.cases import CASES, Case
from opwise.errors import DeviceError
from theano.compile.mode import get_mode
from theano.compile.module import default_initialize

# Costs may differ from numpy's by rounding that a thousand updates pass on, not by more.
COST_TOLERANCE = {"float64": 1e-8, "float32": 1e-3}


class RegressionLayer(theano.Module):
    """A sigmoid of an affine map, with the sum of its squared errors as the cost to descend."""

    def __init__(self):
        super().__init__()
        self.w = T.matrix()
        self.b = T.vector()
        self.stepsize = T.scalar()

        inputs, target = T.matrix("input"), T.matrix("target")
        activation = T.dot(inputs, self.w) + self.b
        prediction = T.nnet.sigmoid(activation)
        cost = T.sum(T.sqr(prediction - target))
        grad_w, grad_b, grad_act = T.grad(cost, [self.w, self.b, activation])

        self.update = theano.Method(
            [inputs, target],
            [cost, grad_w, grad_b, grad_act],
            updates={
                self.w: self.w - self.stepsize * grad_w,
                self.b: self.b - self.stepsize * grad_b,
            },
        )
        self.apply = theano.Method([inputs], prediction)

    def _instance_initialize(self, obj, input_size, target_size, seed=1827, **init):
        rng = np.random.RandomState(seed)
        obj.w = floatx(rng.uniform(size=(input_size, target_size), low=-0.5, high=0.5))
        obj.b = floatx(np.zeros(target_size))
        obj.stepsize = 0.01
        default_initialize(obj, **init)


class PrintEverythingMode(theano.Mode):
    """Prints every Apply, with the values that go in and the values that come out."""

    def __init__(self, linker="c|py", optimizer="fast_run"):
        def print_eval(position, node, thunk):
            print(position, node, [cell[0] for cell in thunk.inputs])
            thunk()
            print("    ->", [cell[0] for cell in thunk.outputs])

        wrapped = theano.Mode(linker, None).linker
        super().__init__(theano.gof.WrapLinkerMany([wrapped], [print_eval]), optimizer)


@dataclass(frozen=True)
class Training:
    """What one training gave: the cost of each update, predictions for the held-out rows, times."""

    costs: np.ndarray
    prediction: np.ndarray
    compile_seconds: float
    update_seconds: float
    cost_error: float

    @property
    def ok(self) -> bool:
        return self.cost_error <= COST_TOLERANCE[theano.config.floatX]


def floatx(values):
    return np.asarray(values, dtype=theano.config.floatX)


def train(case: Case, mode, show: bool = True) -> Training:
    """Compile the module under the mode, run the case's updates, and predict the held-out rows."""
    start = time.perf_counter()
    model = RegressionLayer().make(
        input_size=case.train_x.shape[1], target_size=1, stepsize=case.stepsize, mode=mode
    )
    compile_seconds = time.perf_counter() - start
    weights, biases = np.array(model.w), np.array(model.b)

    costs = []
    update_seconds = 0.0
    for i, (inputs, targets) in enumerate(case.batches()):
        start = time.perf_counter()
        cost, _, _, _ = model.update(inputs, targets)
        update_seconds += time.perf_counter() - start
        costs.append(float(cost))
        if show and i % case.report_every == 0:
            print(i, cost)
    prediction = model.apply(case.test_x) if len(case.test_x) else case.test_y

    if show and case.name == "seed":
        print("final weights:", np.asarray(model.w).ravel())
        print("final biases:", np.asarray(model.b))
    expected, _ = reference.train(case, weights, biases)
    return Training(
        costs=np.array(costs),
        prediction=np.asarray(prediction),
        compile_seconds=compile_seconds,
        update_seconds=update_seconds,
        cost_error=float(np.max(np.abs(costs - expected) / np.maximum(expected, 1e-6))),
    )


def report(case: Case, training: Training) -> None:
    """Print the last cost, the held-out accuracy, the times, and the distance from numpy."""
    print(f"final cost {training.costs[-1]:.6g} (first {training.costs[0]:.6g})")
    if len(case.test_x):
        right = (training.prediction > 0.5) == (case.test_y > 0.5)
        print(f"accuracy on {right.size} held-out rows: {right.mean():.1%}")
    per_update = training.update_seconds / case.updates
    print(
        f"compiled in {training.compile_seconds:.3f} s; {case.updates} updates in "
        f"{training.update_seconds:.3f} s, {per_update * 1e6:.1f} us each"
    )
    verdict = "agrees with" if training.ok else "DIFFERS FROM"
    print(f"{verdict} numpy: largest relative difference of a cost {training.cost_error:.1e}")


def run(cases: list[Case], mode, label: str, show: bool = True) -> bool:
    """Train every case under one mode; True if all costs agree with numpy's."""
    agreed = True
    for case in cases:
        rows, features = case.train_x.shape
        held = len(case.test_x)
        print(f"\n{case.name} under {label}: {rows} rows of {features} features, {held} held out")
        training = train(case, mode, show)
        report(case, training)
        agreed = agreed and training.ok
    return agreed


def run_diff(cases: list[Case], optimizer, limits: dict, names: tuple[str, str]) -> bool:
    """Train under two linkers or on two devices; print what the first costs beyond the other."""
    modes = [theano.ProfileMode(optimizer=optimizer, linker=linker_of(name)) for name in names]
    agreed = [
        run(cases, mode, f"ProfileMode, {name}", show=False)
        for name, mode in zip(names, modes, strict=True)
    ]
    print(f"\n{names[0]} minus {names[1]}:")
    modes[0].print_diff_summary(modes[1], **limits)
    return all(agreed)


def linker_of(name: str):
    """The linker of a name; for that of a device the one that runs there."""
    if name == "cpu":
        return "c|py"
    if not name.startswith(("cuda", "gpu")):
        return name
    device = importlib.import_module("opwise.gpu.runtime.device")
    device.device(device.index_of(name))  # says what is missing, before anything is trained
    return importlib.import_module("opwise.gpu.linker").CupyLinker(name)


def make_mode(name: str, linker: str | None, optimizer: str | None):
    """The mode of that name; linker and optimizer are for the modes that take them."""
    if name not in BUILDERS:
        return get_mode(name)
    chosen = {"linker": linker, "optimizer": optimizer}
    return BUILDERS[name](**{key: value for key, value in chosen.items() if value is not None})


def profile_mode(linker=None, optimizer="fast_run"):
    """The ProfileMode that most users want: C where there is C, and every optimization."""
    linker = theano.gof.OpWiseCLinker() if linker is None else linker
    return theano.ProfileMode(optimizer=optimizer, linker=linker)


BUILDERS = {
    "Mode": theano.Mode,
    "ProfileMode": profile_mode,
    "PrintEverythingMode": PrintEverythingMode,
}
REGISTERED = ("FAST_RUN", "FAST_COMPILE", "PROFILE_MODE", "DEBUG_MODE", "NanGuardMode")


def parse(argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmark.regression.regression",
        description="Train a logistic regression under a mode, and show where the time goes.",
    )
    parser.add_argument("mode", nargs="?", default="PROFILE_MODE", choices=[*REGISTERED, *BUILDERS])
    parser.add_argument("--linker", help=f"py, c|py, ... (for {', '.join(BUILDERS)})")
    parser.add_argument("--optimizer", help="fast_run, fast_compile, None, ... (likewise)")
    parser.add_argument("--case", choices=[*CASES, "all"], default="all")
    parser.add_argument("--epochs", type=positive, help="times through the training rows")
    parser.add_argument("--batch", type=positive, help="rows to an update (default: all of them)")
    parser.add_argument("--n-apply", type=int, help="Apply rows to print (default: 15)")
    parser.add_argument("--n-ops", type=int, help="Op rows to print (default: 20)")
    parser.add_argument(
        "--diff",
        nargs=2,
        metavar=("A", "B"),
        help="train under two linkers, or on two devices, alone and print the difference: "
        "py c|py, cpu cuda, ... (PROFILE_MODE prints that of py and c|py)",
    )
    parser.add_argument("--no-diff", action="store_true", help="print no difference")
    args = parser.parse_args(argv)
    if args.mode not in BUILDERS and (args.linker or args.optimizer):
        parser.error(
            f"{args.mode} fixes its linker and optimizer; "
            f"--linker and --optimizer go with {', '.join(BUILDERS)}"
        )
    if args.epochs is None and args.mode == "PrintEverythingMode":
        args.epochs = 1
    return args


def positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{number} is not a positive number")
    return number


def main(argv: list[str] | None = None) -> int:
    """Run the benchmark; 0 if every cost agrees with numpy's, 1 if not, 2 without the device."""
    args = parse(argv)
    names = CASES if args.case == "all" else [args.case]
    cases = [CASES[name](args.epochs, args.batch, theano.config.floatX) for name in names]
    limits = {"n_apply_to_print": args.n_apply, "n_ops_to_print": args.n_ops}

    optimizer = args.optimizer or "fast_run"
    if args.diff:
        try:
            return 0 if run_diff(cases, optimizer, limits, args.diff) else 1
        except DeviceError as error:
            print(
                f"{args.diff[0]} and {args.diff[1]} cannot be compared here. {error}",
                file=sys.stderr,
            )
            return 2
    mode = make_mode(args.mode, args.linker, args.optimizer)
    label = " ".join(part for part in (args.mode, args.linker, args.optimizer) if part)
    agreed = run(cases, mode, label)
    if isinstance(mode, theano.ProfileMode):
        mode.print_summary(**limits)
    if args.mode == "PROFILE_MODE" and not args.no_diff:
        agreed &= run_diff(cases, optimizer, limits, ("py", "c|py"))
    return 0 if agreed else 1


if __name__ == "__main__":
    sys.exit(main())
