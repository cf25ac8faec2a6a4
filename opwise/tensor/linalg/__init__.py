"""Linear algebra and Fourier transforms; theano.tensor has ``nlinalg``, ``slinalg`` and ``fft``."""

from opwise.tensor.linalg.eigen import *  # noqa: F403
from opwise.tensor.linalg.factor import *  # noqa: F403
from opwise.tensor.linalg.fft import *  # noqa: F403
from opwise.tensor.linalg.hint import *  # noqa: F403
from opwise.tensor.linalg.inverse import *  # noqa: F403
from opwise.tensor.linalg.products import *  # noqa: F403
from opwise.tensor.linalg.systems import *  # noqa: F403
