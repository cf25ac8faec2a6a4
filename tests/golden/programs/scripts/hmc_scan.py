"""Hybrid Monte Carlo with leapfrog steps in a scan, as the deep learning tutorials had it."""

from __future__ import print_function

import numpy

from theano import function, shared
from theano import tensor as TT
import theano

sharedX = lambda X, name: shared(numpy.asarray(X, dtype=theano.config.floatX), name=name)


def kinetic_energy(vel):
    return 0.5 * (vel**2).sum(axis=1)


def hamiltonian(pos, vel, energy_fn):
    return energy_fn(pos) + kinetic_energy(vel)


def metropolis_hastings_accept(energy_prev, energy_next, s_rng):
    ediff = energy_prev - energy_next
    return (TT.exp(ediff) - s_rng.uniform(size=energy_prev.shape)) >= 0


def simulate_dynamics(initial_pos, initial_vel, stepsize, n_steps, energy_fn):
    def leapfrog(pos, vel, step):
        dE_dpos = TT.grad(energy_fn(pos).sum(), pos)
        new_vel = vel - step * dE_dpos
        new_pos = pos + step * new_vel
        return [new_pos, new_vel], {}

    initial_energy = energy_fn(initial_pos)
    dE_dpos = TT.grad(initial_energy.sum(), initial_pos)
    vel_half_step = initial_vel - 0.5 * stepsize * dE_dpos
    pos_full_step = initial_pos + stepsize * vel_half_step
    (all_pos, all_vel), scan_updates = theano.scan(
        leapfrog,
        outputs_info=[
            dict(initial=pos_full_step),
            dict(initial=vel_half_step),
        ],
        non_sequences=[stepsize],
        n_steps=n_steps - 1,
    )
    final_pos = all_pos[-1]
    final_vel = all_vel[-1]
    assert not scan_updates
    energy = energy_fn(final_pos)
    final_vel = final_vel - 0.5 * stepsize * TT.grad(energy.sum(), final_pos)
    return final_pos, final_vel


def hmc_move(s_rng, positions, energy_fn, stepsize, n_steps):
    initial_vel = s_rng.normal(size=positions.shape)
    final_pos, final_vel = simulate_dynamics(
        initial_pos=positions,
        initial_vel=initial_vel,
        stepsize=stepsize,
        n_steps=n_steps,
        energy_fn=energy_fn,
    )
    accept = metropolis_hastings_accept(
        energy_prev=hamiltonian(positions, initial_vel, energy_fn),
        energy_next=hamiltonian(final_pos, final_vel, energy_fn),
        s_rng=s_rng,
    )
    return accept, final_pos


def hmc_updates(
    positions,
    stepsize,
    avg_acceptance_rate,
    final_pos,
    accept,
    target_acceptance_rate,
    stepsize_inc,
    stepsize_dec,
    stepsize_min,
    stepsize_max,
    avg_acceptance_slowness,
):
    accept_matrix = accept.dimshuffle(0, *(("x",) * (final_pos.ndim - 1)))
    new_positions = TT.switch(accept_matrix, final_pos, positions)
    _new_stepsize = TT.switch(
        avg_acceptance_rate > target_acceptance_rate,
        stepsize * stepsize_inc,
        stepsize * stepsize_dec,
    )
    new_stepsize = TT.clip(_new_stepsize, stepsize_min, stepsize_max)
    mean_dtype = theano.scalar.upcast(accept.dtype, avg_acceptance_rate.dtype)
    new_acceptance_rate = TT.add(
        avg_acceptance_slowness * avg_acceptance_rate,
        (1.0 - avg_acceptance_slowness) * accept.mean(dtype=mean_dtype),
    )
    return [
        (positions, new_positions),
        (stepsize, new_stepsize),
        (avg_acceptance_rate, new_acceptance_rate),
    ]


def main(batchsize=3, dim=2, burnin=20, n_samples=300):
    rng = numpy.random.RandomState(123)
    mu = numpy.array(rng.rand(dim), dtype=theano.config.floatX)
    cov = numpy.array([[1.0, 0.6], [0.6, 1.5]], dtype=theano.config.floatX)
    cov_inv = numpy.linalg.inv(cov)

    def gaussian_energy(x):
        return 0.5 * (TT.dot((x - mu), cov_inv) * (x - mu)).sum(axis=1)

    positions = shared(rng.randn(batchsize, dim).astype(theano.config.floatX))
    stepsize = sharedX(0.1, "hmc_stepsize")
    avg_acceptance_rate = sharedX(0.9, "avg_acceptance_rate")
    s_rng = TT.shared_randomstreams.RandomStreams(12345)
    accept, final_pos = hmc_move(s_rng, positions, gaussian_energy, stepsize, 10)
    simulate_updates = hmc_updates(
        positions,
        stepsize,
        avg_acceptance_rate,
        final_pos=final_pos,
        accept=accept,
        stepsize_min=0.001,
        stepsize_max=0.25,
        stepsize_inc=1.02,
        stepsize_dec=0.98,
        target_acceptance_rate=0.9,
        avg_acceptance_slowness=0.9,
    )
    simulate = function([], [], updates=simulate_updates)
    samples = []
    for i in range(burnin + n_samples):
        simulate()
        if i >= burnin:
            samples.append(positions.get_value(borrow=False))
    samples = numpy.array(samples).reshape(-1, dim)
    print("target cov:", " ".join("%.2f" % v for v in cov.ravel()))
    print("empirical cov:", " ".join("%.2f" % v for v in numpy.cov(samples.T).ravel()))
    print("final stepsize %.5f" % stepsize.get_value())
    print("final acceptance_rate %.5f" % avg_acceptance_rate.get_value())
    return {
        "samples": samples[::10],
        "off": numpy.abs(numpy.cov(samples.T) - cov).max(),
        "acceptance": avg_acceptance_rate.get_value(),
    }


if __name__ == "__main__":
    main()
