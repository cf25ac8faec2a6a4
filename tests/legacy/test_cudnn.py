"""The names of Theano's GPU libraries that programs import: on the CPU they compute the same."""

import numpy as np
import pytest

import theano
import theano.gpuarray.basic_ops as gpuarray
import theano.gpuarray.dnn as dnn
import theano.sandbox.cuda.basic_ops as cuda
import theano.sandbox.cuda.dnn as cuda_dnn
import theano.tensor as T
from opwise.errors import MissingFeatureError
from theano.sandbox.cuda.blas import GpuCorr3dMM, GpuCorrMM, GpuCorrMM_gradInputs
from theano.sandbox.cuda.fftconv import conv2d_fft, conv3d_fft
from theano.tensor.nnet import conv2d, conv3d
from theano.tensor.nnet.abstract_conv import conv2d_transpose

x, w = T.dtensor4("x"), T.dtensor4("w")
IMAGES = np.random.default_rng(0).standard_normal((2, 3, 7, 8))
KERNELS = np.random.default_rng(1).standard_normal((4, 3, 3, 2))


def agree(got, want, images=IMAGES, kernels=KERNELS):
    f = theano.function([x, w], [got, want], on_unused_input="ignore")
    a, b = f(images, kernels)
    np.testing.assert_allclose(a, b, atol=1e-12)


@pytest.mark.parametrize("module", [dnn, cuda_dnn])
@pytest.mark.parametrize("mode", ("conv", "cross"))
@pytest.mark.parametrize("border", ("valid", "full", "half", 1, (2, 0)))
def test_convolutions_and_their_gradients(module, mode, border):
    options = {"border_mode": border, "subsample": (2, 1)}
    want = conv2d(x, w, filter_flip=mode == "conv", **options)
    got = module.dnn_conv(x, w, conv_mode=mode, algo="small", precision="float32", **options)
    agree(got, want)
    by_x, by_w = T.grad((want**2).sum() / 2, [x, w])
    agree(module.dnn_gradinput(w, want, x.shape, conv_mode=mode, **options), by_x)
    agree(module.dnn_gradweight(x, want, w.shape, conv_mode=mode, **options), by_w)


@pytest.mark.parametrize("module", [dnn, cuda_dnn])
def test_convolutions_of_volumes(module):
    v, k = T.dtensor5(), T.dtensor5()
    want = conv3d(v, k, filter_flip=False, border_mode=1)
    got = [module.dnn_conv3d(v, k, border_mode=1, conv_mode="cross")]
    got.append(module.dnn_gradinput3d(k, want, v.shape, border_mode=1, conv_mode="cross"))
    got.append(module.dnn_gradweight3d(v, want, k.shape, border_mode=1, conv_mode="cross"))
    wanted = [want, *T.grad((want**2).sum() / 2, [v, k])]
    found = theano.function([v, k], [*got, *wanted])(IMAGES[:, :, None].repeat(4, 2),
                                                    KERNELS[:, :, None].repeat(2, 2))  # fmt: skip
    for a, b in zip(found[:3], found[3:], strict=True):
        np.testing.assert_allclose(a, b, atol=1e-10)


def test_a_deconvolution_as_generators_of_images_have_it():
    """The Op of the gradient by images, with a descriptor and an output that is not filled."""

    def deconv(X, w, subsample, border_mode, conv_mode="conv"):
        img = cuda.gpu_contiguous(cuda.as_cuda_ndarray_variable(X))
        kerns = cuda.gpu_contiguous(w)
        shape = (img.shape[0], kerns.shape[1], img.shape[2] * subsample[0],
                 img.shape[3] * subsample[1])  # fmt: skip
        desc = cuda_dnn.GpuDnnConvDesc(
            border_mode=border_mode, subsample=subsample, conv_mode=conv_mode
        )(cuda.gpu_alloc_empty(*shape).shape, kerns.shape)
        out = cuda.gpu_alloc_empty(*shape)
        return cuda.host_from_gpu(cuda_dnn.GpuDnnConvGradI()(kerns, img, out, desc))

    got = deconv(x, w, (2, 2), (1, 1))
    want = conv2d_transpose(x, w, (None, 5, 14, 16), border_mode=(1, 1), input_dilation=(2, 2))
    kernels = np.random.default_rng(1).standard_normal((3, 5, 4, 4))
    agree(got, want, kernels=kernels)
    agree(T.grad((got**2).sum(), w), T.grad((want**2).sum(), w), kernels=kernels)


@pytest.mark.parametrize("module", [dnn, cuda_dnn])
def test_ops_with_descriptors(module):
    desc = module.GpuDnnConvDesc("full", (1, 1), conv_mode="cross")(x.shape, w.shape)
    want = conv2d(x, w, border_mode="full", filter_flip=False)
    out = T.ones_like(want)
    agree(module.GpuDnnConv(algo="small")(x, w, out, desc), want)
    agree(module.GpuDnnConv()(x, w, out, desc, 2.0, 3.0), 2 * want + 3)
    by_w = T.grad((want**2).sum() / 2, w)
    agree(module.GpuDnnConvGradW()(x, want, T.zeros_like(w), desc), by_w)
    assert module.GpuDnnConv.get_out_shape((2, 3, 7, 8), (4, 3, 3, 2), "valid", (1, 1)) == (
        2,
        4,
        5,
        7,
    )
    with pytest.raises(ValueError, match="conv_mode must be 'conv' or 'cross'"):
        module.dnn_conv(x, w, conv_mode="deconv")


def test_pooling():
    pool = T.signal.pool.pool_2d
    agree(cuda_dnn.dnn_pool(x, (2, 3)), pool(x, (2, 3), True, (1, 1)))
    agree(dnn.dnn_pool(x, (3, 3), (2, 2), "average_exc_pad", (1, 1)),
          pool(x, (3, 3), True, (2, 2), (1, 1), "average_exc_pad"))  # fmt: skip
    agree(dnn.dnn_pool(x, (2, 2), (2, 2), "average"), pool(x, (2, 2), True, mode="average_inc_pad"))
    agree(dnn.GpuDnnPool("max")(x, (2, 2), (2, 2), (0, 0)), pool(x, (2, 2), True))
    desc = cuda_dnn.GpuDnnPoolDesc((2, 2), (2, 2))()
    agree(cuda_dnn.GpuDnnPool()(x, desc), pool(x, (2, 2), True))
    v = T.dtensor5()
    assert cuda_dnn.dnn_pool(v, (2, 2, 2)).eval({v: IMAGES[:, :, None].repeat(3, 2)}).shape == (
        2, 3, 2, 6, 7,
    )  # fmt: skip
    with pytest.raises(ValueError, match="ws must be two or three lengths"):
        dnn.dnn_pool(x, (2, 2, 2, 2))


def test_softmax():
    by_channel = np.exp(IMAGES) / np.exp(IMAGES).sum(1, keepdims=True)
    for op in (dnn.GpuDnnSoftmax("accurate", "channel"),
               cuda_dnn.GpuDnnSoftmax("bc01", "fast", "channel")):  # fmt: skip
        agree(op(x), T.constant(by_channel))
    whole = np.log(np.exp(IMAGES) / np.exp(IMAGES).sum((1, 2, 3), keepdims=True))
    agree(dnn.GpuDnnSoftmax("log", "instance")(x), T.constant(whole))
    last = np.exp(IMAGES) / np.exp(IMAGES).sum(3, keepdims=True)
    agree(cuda_dnn.GpuDnnSoftmax("b01c", "fast", "channel")(x), T.constant(last))
    with pytest.raises(ValueError, match="needs algo"):
        dnn.GpuDnnSoftmax("channel")


@pytest.mark.parametrize("module", [dnn, cuda_dnn])
@pytest.mark.parametrize(("mode", "axes"), [("spatial", (0, 2, 3)), ("per-activation", (0,))])
def test_batch_normalisation(module, mode, axes):
    gamma, beta = T.dtensor4(), T.dtensor4()
    mean, var = IMAGES.mean(axes, keepdims=True), IMAGES.var(axes, keepdims=True)
    scale, shift = np.full_like(mean, 2), np.full_like(mean, 0.5)
    want = (IMAGES - mean) / np.sqrt(var + 1e-4) * 2 + 0.5
    outputs = module.dnn_batch_normalization_train(x, gamma, beta, mode)
    found = theano.function([x, gamma, beta], outputs)(IMAGES, scale, shift)
    for a, b in zip(found, (want, mean, 1 / np.sqrt(var + 1e-4)), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-10)
    tested = module.dnn_batch_normalization_test(x, scale, shift, mean, var, mode)
    np.testing.assert_allclose(tested.eval({x: IMAGES}), want, atol=1e-10)
    with pytest.raises(ValueError, match="'per-activation' or 'spatial'"):
        module.dnn_batch_normalization_train(x, gamma, beta, "channel")


def test_spatial_transformers():
    theta = np.array([[[0.8, 0.1, 0.3], [-0.2, 1.1, 0.0]]] * 2)
    want = T.nnet.spatialtf.spatialtf if hasattr(T.nnet, "spatialtf") else None
    from theano.tensor.nnet.spatialtf import spatialtf

    assert want in (None, spatialtf)
    agree(dnn.dnn_spatialtf(x, theta, 0.5, 2), spatialtf(x, theta, 0.5, 2, "zero"))
    grid = dnn.GpuDnnTransformerGrid()(theta, (2, 3, 7, 8))
    agree(dnn.GpuDnnTransformerSampler()(x, grid), spatialtf(x, theta, border_mode="zero"))


def test_correlations_and_fourier_transforms():
    agree(GpuCorrMM(subsample=(1, 2), pad=(1, 1))(x, w),
          conv2d(x, w, border_mode=(1, 1), subsample=(1, 2), filter_flip=False))  # fmt: skip
    top = GpuCorrMM("half")(x, w)
    agree(GpuCorrMM_gradInputs("half")(w, top, x.shape[2:]), T.grad((top**2).sum() / 2, x))
    with pytest.raises(ValueError, match="border_mode must be 'valid' if pad is given"):
        GpuCorrMM("half", pad=(1, 1))
    assert GpuCorr3dMM(pad=(1, 1, 1)).border_mode == (1, 1, 1)
    agree(conv2d_fft(x, w, border_mode="full", pad_last_dim=True), conv2d(x, w, border_mode="full"))
    v, k = T.dtensor5(), T.dtensor5()
    assert conv3d_fft(v, k).type.ndim == 5
    with pytest.raises(ValueError, match="'valid' or 'full', not 'half'"):
        conv2d_fft(x, w, border_mode="half")


def test_variables_of_a_gpu_are_variables():
    assert cuda.gpu_alloc_empty(2, 3).type.dtype == "float32"
    assert cuda.GpuAllocEmpty()(2, 3).eval().shape == (2, 3)
    assert gpuarray.gpu_alloc_empty(None, dtype="float64")(2, 3).type.dtype == "float64"
    assert gpuarray.GpuAllocEmpty("int8", None)(4).type.dtype == "int8"
    assert gpuarray.infer_context_name(x) is None
    assert cuda.gpu_alloc(2.5, 2, 2).eval().tolist() == [[2.5, 2.5], [2.5, 2.5]]
    assert cuda.gpu_from_host(x) is x and cuda.host_from_gpu(x) is x
    assert cuda.ftensor4().type.dtype == "float32"
    from theano.sandbox.cuda.var import float32_shared_constructor

    shared = float32_shared_constructor(
        np.ones((2, 1), "float32"), "s", broadcastable=(False, True)
    )
    assert shared.type.broadcastable == (False, True) and shared.name == "s"
    with pytest.raises(TypeError, match="array of float32, not float64 of ndarray"):
        float32_shared_constructor(np.ones(2))
    assert issubclass(theano.sandbox.cuda.GpuOp, theano.Op)


def test_random_numbers_of_a_gpu_are_drawn():
    from theano.sandbox.cuda.rng_curand import CURAND_RandomStreams

    streams = CURAND_RandomStreams(seed=234)
    f = theano.function([], streams.normal((2000,), avg=3.0, std=0.5))
    assert abs(f().mean() - 3) < 0.1


def test_cudnn_is_not_there():
    """Programs that ask take their way for the CPU, which is faster to compile."""
    assert not dnn.dnn_available() and not cuda_dnn.dnn_available()
    with pytest.raises(MissingFeatureError, match="RNNBlock"):
        dnn.RNNBlock("float32", 10, 2, "gru")
