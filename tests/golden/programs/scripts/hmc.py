"""Hybrid Monte Carlo: unrolled leapfrog steps, a Metropolis test, an adaptive step size."""
from __future__ import print_function

import numpy

import theano
from theano import function, shared
from theano import tensor as TT


def kinetic_energy(vel):
    return 0.5 * (vel ** 2).sum(axis=1)


def hamiltonian(pos, vel, energy_fn):
    return energy_fn(pos) + kinetic_energy(vel)


def metropolis_hastings_accept(energy_prev, energy_next, s_rng):
    ediff = energy_prev - energy_next
    return (TT.exp(ediff) - s_rng.uniform(size=energy_prev.shape,
                                          dtype=theano.config.floatX)) >= 0


def simulate_dynamics(initial_pos, initial_vel, stepsize, n_steps, energy_fn):
    def dE_dpos(pos):
        return TT.grad(energy_fn(pos).sum(), pos)

    vel = initial_vel - 0.5 * stepsize * dE_dpos(initial_pos)
    pos = initial_pos + stepsize * vel
    for _ in range(n_steps - 1):
        vel = vel - stepsize * dE_dpos(pos)
        pos = pos + stepsize * vel
    return pos, vel - 0.5 * stepsize * dE_dpos(pos)


def hmc_updates(positions, stepsize, avg_acceptance_rate, final_pos, accept,
                target_acceptance_rate=0.9, stepsize_inc=1.02, stepsize_dec=0.98,
                stepsize_min=0.001, stepsize_max=0.25, avg_acceptance_slowness=0.9):
    accept_matrix = accept.dimshuffle(0, *(('x',) * (final_pos.ndim - 1)))
    new_positions = TT.switch(accept_matrix, final_pos, positions)
    _new_stepsize = TT.switch(avg_acceptance_rate > target_acceptance_rate,
                              stepsize * stepsize_inc, stepsize * stepsize_dec)
    new_stepsize = TT.clip(_new_stepsize, stepsize_min, stepsize_max)
    mean_dtype = theano.scalar.upcast(accept.dtype, avg_acceptance_rate.dtype)
    new_acceptance_rate = TT.add(
        avg_acceptance_slowness * avg_acceptance_rate,
        (1.0 - avg_acceptance_slowness) * accept.mean(dtype=mean_dtype))
    return [(positions, new_positions),
            (stepsize, TT.cast(new_stepsize, stepsize.dtype)),
            (avg_acceptance_rate, TT.cast(new_acceptance_rate, avg_acceptance_rate.dtype))]


class HMC_sampler(object):
    def __init__(self, **kwargs):
        self.__dict__.update(kwargs)

    @classmethod
    def new_from_shared_positions(cls, shared_positions, energy_fn, initial_stepsize=0.1,
                                  n_steps=5, seed=12345):
        stepsize = shared(numpy.asarray(initial_stepsize, dtype=theano.config.floatX),
                          'hmc_stepsize')
        avg_acceptance_rate = shared(numpy.asarray(0.9, dtype=theano.config.floatX),
                                     'avg_acceptance_rate')
        s_rng = TT.shared_randomstreams.RandomStreams(seed)
        initial_vel = s_rng.normal(size=shared_positions.shape, dtype=theano.config.floatX)
        final_pos, final_vel = simulate_dynamics(shared_positions, initial_vel, stepsize, n_steps,
                                                 energy_fn)
        accept = metropolis_hastings_accept(
            energy_prev=hamiltonian(shared_positions, initial_vel, energy_fn),
            energy_next=hamiltonian(final_pos, final_vel, energy_fn), s_rng=s_rng)
        updates = hmc_updates(shared_positions, stepsize, avg_acceptance_rate, final_pos, accept)
        simulate = function([], [accept], updates=updates)
        return cls(positions=shared_positions, stepsize=stepsize,
                   avg_acceptance_rate=avg_acceptance_rate, simulate=simulate)

    def draw(self):
        accepted, = self.simulate()
        return self.positions.get_value(borrow=False), accepted


def main(batchsize=4, dim=3, burnin=6, n_samples=10, n_steps=4):
    rng = numpy.random.RandomState(123)
    mu = numpy.array(rng.rand(dim) * 10, dtype=theano.config.floatX)
    cov = numpy.array(rng.rand(dim, dim), dtype=theano.config.floatX)
    cov = (cov + cov.T) / 2.
    cov[numpy.arange(dim), numpy.arange(dim)] = 1.0 + dim
    cov_inv = numpy.linalg.inv(cov)

    def gaussian_energy(x):
        return 0.5 * (TT.dot((x - mu), cov_inv) * (x - mu)).sum(axis=1)

    position = shared(rng.randn(batchsize, dim).astype(theano.config.floatX))
    sampler = HMC_sampler.new_from_shared_positions(position, gaussian_energy, n_steps=n_steps)
    accepted = [sampler.draw()[1] for _ in range(burnin)]
    samples = numpy.asarray([sampler.draw()[0] for _ in range(n_samples)])
    print('mean', ' '.join('%.4f' % v for v in samples.reshape(-1, dim).mean(axis=0)))
    print('stepsize %.5f, acceptance rate %.5f' % (
        sampler.stepsize.get_value(), sampler.avg_acceptance_rate.get_value()))
    return {'samples': samples, 'accepted': numpy.array(accepted).astype('int8'),
            'stepsize': sampler.stepsize.get_value()}


if __name__ == '__main__':
    main()
