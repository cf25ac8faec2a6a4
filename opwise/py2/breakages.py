"""What worked when old programs were written and no longer does: the one table of it.

``opwise doctor`` reports what the table finds in a program, and ``opwise run --py2`` gives programs
what the table names. Each kind of breakage has its part below: syntax, names of modules, attributes
of objects, and patterns, which are functions.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field

from opwise.py2.names import Facts

#: of what no version of Python 3 had
SINCE_PYTHON_3 = "gone since Python 3.0"


@dataclass(frozen=True)
class Old:
    """A name that is gone or changed."""

    #: the dotted name, or that of an attribute of objects
    name: str
    #: since when, as in "time.clock is gone since Python 3.8"
    since: str
    #: what to write instead
    new: str
    #: the dotted name of what ``opwise run --py2`` gives instead; "": nothing
    given: str

    @property
    def text(self) -> str:
        """What is wrong and what to do, for users."""
        return f"{self.name} is {self.since}: write {self.new}"


def _rows(table: str, since: str, prefix: str = "") -> dict[str, Old]:
    """Return {name: Old} of lines ``name  new  given``, separated by two spaces or more.

    given: the dotted name of what --py2 gives (default: ``new``), or "nothing".
    """
    rows = {}
    for line in table.strip().splitlines():
        name, new, *given = re.split(r"\s{2,}", line.strip())
        what = given[0] if given else new
        rows[name] = Old(name, since, f"{prefix}{new}", "" if what == "nothing" else what)
    return rows


# --- syntax ---------------------------------------------------------------------------------------

#: a fixer of fissix -> the syntax that it rewrites and what to write
SYNTAX = {
    "print": "the print statement is gone since Python 3.0: write print(...)",
    "except": "except E, e is gone since Python 3.0: write except E as e",
    "raise": "raise E, value is gone since Python 3.0: write raise E(value)",
    "exec": "the exec statement is gone since Python 3.0: write exec(code, globals)",
    "repr": "backticks are gone since Python 3.0: write repr(...)",
    "ne": "<> is gone since Python 3.0: write !=",
    "numliterals": "0777 and 10L are gone since Python 3.0: write 0o777 and 10",
    "tuple_params": "tuples as parameters are gone since Python 3.0: unpack them in the body",
    "paren": "[x for x in 1, 2] is gone since Python 3.0: write [x for x in (1, 2)]",
    "throw": "throw(E, value) is gone since Python 3.12: write throw(E(value))",
}

# --- names of modules -----------------------------------------------------------------------------

# builtins: given by ``opwise.py2.builtin``
_BUILTINS = """
    xrange                      range
    unicode                     str
    basestring                  str
    long                        int
    unichr                      chr
    raw_input                   input
    file                        open
    reduce                      functools.reduce
    cmp                         (a > b) - (a < b)
    apply                       f(*args, **kwargs)
    execfile                    exec(open(path).read())
    reload                      importlib.reload
    intern                      sys.intern
    buffer                      memoryview
    coerce                      an explicit conversion
    StandardError               Exception
"""
_PYTHON_3 = """
    cPickle                     pickle                              opwise.py2.pickles
    StringIO                    io.StringIO                         opwise.py2.library.StringIO
    cStringIO                   io.StringIO                         opwise.py2.library.StringIO
    ConfigParser                configparser                        opwise.py2.library.ConfigParser
    Queue                       queue
    copy_reg                    copyreg
    thread                      _thread
    commands                    subprocess
    urllib2                     urllib.request                      opwise.py2.library.urllib2
    urlparse                    urllib.parse
    httplib                     http.client
    cookielib                   http.cookiejar
    Cookie                      http.cookies
    BaseHTTPServer              http.server
    SimpleHTTPServer            http.server
    SocketServer                socketserver
    HTMLParser                  html.parser
    htmlentitydefs              html.entities
    robotparser                 urllib.robotparser
    xmlrpclib                   xmlrpc.client
    anydbm                      dbm
    dumbdbm                     dbm.dumb
    gdbm                        dbm.gnu
    repr                        reprlib
    Tkinter                     tkinter
    tkMessageBox                tkinter.messagebox
    tkFileDialog                tkinter.filedialog
    __builtin__                 builtins                            opwise.py2.builtin.MODULE
    exceptions                  builtins
    sets                        set and frozenset                   opwise.py2.library.sets
    md5                         hashlib.md5                         opwise.py2.library.md5
    sha                         hashlib.sha1                        opwise.py2.library.sha
    UserDict                    collections.UserDict                opwise.py2.library.user_types
    UserList                    collections.UserList                opwise.py2.library.user_types
    future_builtins             builtins
    email.MIMEText              email.mime.text
    email.MIMEMultipart         email.mime.multipart
    urllib.urlopen              urllib.request.urlopen           opwise.py2.binary.urlopen
    urllib.urlretrieve          urllib.request.urlretrieve
    urllib.urlcleanup           urllib.request.urlcleanup
    urllib.URLopener            urllib.request.build_opener()    urllib.request.URLopener
    urllib.FancyURLopener       urllib.request.build_opener()    urllib.request.FancyURLopener
    urllib.urlencode            urllib.parse.urlencode
    urllib.quote                urllib.parse.quote
    urllib.quote_plus           urllib.parse.quote_plus
    urllib.unquote              urllib.parse.unquote
    urllib.unquote_plus         urllib.parse.unquote_plus
    sys.maxint                  sys.maxsize
    sys.setdefaultencoding      nothing: text is Unicode            opwise.py2.library.ignore
    sys.exc_clear               nothing                             opwise.py2.library.ignore
    sys.exc_type                sys.exc_info()[0]                   nothing
    sys.exc_value               sys.exc_info()[1]                   nothing
    os.getcwdu                  os.getcwd
    os.errno                    errno
    os.spawnvp                  subprocess.call                     nothing
    itertools.izip              zip
    itertools.imap              map
    itertools.ifilter           filter
    itertools.izip_longest      itertools.zip_longest
    itertools.ifilterfalse      itertools.filterfalse
    operator.div                operator.floordiv or truediv        opwise.py2.builtin.divide
    operator.isCallable         callable
    operator.sequenceIncludes   operator.contains
    operator.isSequenceType     collections.abc.Sequence            opwise.py2.library.is_sequence
    operator.isMappingType      collections.abc.Mapping             opwise.py2.library.is_mapping
    operator.isNumberType       numbers.Number                      opwise.py2.library.is_number
    string.letters              string.ascii_letters
    string.lowercase            string.ascii_lowercase
    string.uppercase            string.ascii_uppercase
    string.join                 the method join of text             opwise.py2.library.join
    string.joinfields           the method join of text             opwise.py2.library.join
    string.split                the method split of text            str.split
    string.splitfields          the method split of text            str.split
    string.replace              the method replace of text          str.replace
    string.strip                the method strip of text            str.strip
    string.lstrip               the method lstrip of text           str.lstrip
    string.rstrip               the method rstrip of text           str.rstrip
    string.lower                the method lower of text            str.lower
    string.upper                the method upper of text            str.upper
    string.capitalize           the method capitalize of text       str.capitalize
    string.find                 the method find of text             str.find
    string.rfind                the method rfind of text            str.rfind
    string.index                the method index of text            str.index
    string.count                the method count of text            str.count
    string.zfill                the method zfill of text            opwise.py2.library.zfill
    string.ljust                the method ljust of text            str.ljust
    string.rjust                the method rjust of text            str.rjust
    string.center               the method center of text           str.center
    string.translate            the method translate of text        str.translate
    string.maketrans            str.maketrans
    string.atoi                 int
    string.atol                 int
    string.atof                 float
    types.StringType            str
    types.UnicodeType           str
    types.StringTypes           str                                 opwise.py2.library.string_types
    types.IntType               int
    types.LongType              int
    types.FloatType             float
    types.ComplexType           complex
    types.BooleanType           bool
    types.ListType              list
    types.TupleType             tuple
    types.DictType              dict
    types.DictionaryType        dict
    types.NoneType              type(None)                          opwise.py2.library.none_type
    types.ObjectType            object
    types.TypeType              type
    types.ClassType             type
    types.InstanceType          object
    types.FileType              io.IOBase
    types.SliceType             slice
    types.UnboundMethodType     types.FunctionType
"""
_PYTHON_35 = """
    inspect.getargspec          inspect.getfullargspec              opwise.py2.library.getargspec
    inspect.getmoduleinfo       inspect.getmodulename               nothing
"""
_PYTHON_38 = """
    time.clock                  time.perf_counter                   time.process_time
    cgi.escape                  html.escape
    platform.linux_distribution  the package distro                 nothing
    platform.dist               the package distro                  nothing
"""
_PYTHON_39 = """
    fractions.gcd               math.gcd
    xml.etree.cElementTree      xml.etree.ElementTree
    base64.decodestring         base64.decodebytes                  opwise.py2.library.decode_base64
    base64.encodestring         base64.encodebytes                  opwise.py2.library.encode_base64
"""
_PYTHON_310 = "\n".join(
    f"collections.{name}  collections.abc.{name}"
    for name in "Mapping MutableMapping Sequence MutableSequence Set MutableSet Iterable Iterator "
    "Callable Hashable Sized Container Generator ItemsView KeysView ValuesView".split()
)
_PYTHON_312 = """
    imp                         importlib                           opwise.py2.library.imp
    distutils                   setuptools                          setuptools
    asyncore                    asyncio                             nothing
    asynchat                    asyncio                             nothing
"""
_PYTHON_313 = """
    pipes.quote                 shlex.quote
    cgi                         the package legacy-cgi              nothing
    imghdr                      the package filetype                nothing
"""
_NUMPY_1 = """
    numpy.float                 float
    numpy.int                   int
    numpy.complex               complex
    numpy.object                object
    numpy.str                   str
    numpy.unicode               str
    numpy.typeDict              numpy.sctypeDict
    numpy.asscalar              x.item()                            opwise.py2.library.asscalar
    numpy.alen                  len
    numpy.rank                  numpy.ndim
    numpy.oldnumeric            numpy                               nothing
    numpy.loads                 pickle.loads                        opwise.py2.pickles.loads
    numpy.fft.fftpack           numpy.fft
    numpy.random.random_integers  numpy.random.randint  opwise.py2.library.random_integers
    numpy.MachAr                numpy.finfo                         opwise.py2.library.MachAr
    numpy.core.umath_tests      numpy.einsum or numpy.matmul        opwise.py2.library.umath_tests
    numpy.testing.Tester        pytest                              opwise.py2.library.Tester
"""
_NUMPY_BACK = """
    numpy.bool                  bool
    numpy.long                  int
"""
_NUMPY_2 = """
    numpy.float_                numpy.float64
    numpy.complex_              numpy.complex128
    numpy.bool8                 numpy.bool_
    numpy.int0                  numpy.intp
    numpy.uint0                 numpy.uintp
    numpy.object0               numpy.object_
    numpy.str0                  numpy.str_
    numpy.bytes0                numpy.bytes_
    numpy.void0                 numpy.void
    numpy.longfloat             numpy.longdouble
    numpy.longcomplex           numpy.clongdouble
    numpy.singlecomplex         numpy.complex64
    numpy.cfloat                numpy.complex128
    numpy.clongfloat            numpy.clongdouble
    numpy.string_               numpy.bytes_
    numpy.unicode_              numpy.str_
    numpy.Inf                   numpy.inf
    numpy.Infinity              numpy.inf
    numpy.infty                 numpy.inf
    numpy.PINF                  numpy.inf
    numpy.NINF                  -numpy.inf                          opwise.py2.library.minus_inf
    numpy.NaN                   numpy.nan
    numpy.NAN                   numpy.nan
    numpy.PZERO                 0.0                                 opwise.py2.library.zero
    numpy.NZERO                 -0.0                                opwise.py2.library.minus_zero
    numpy.product               numpy.prod
    numpy.cumproduct            numpy.cumprod
    numpy.alltrue               numpy.all
    numpy.sometrue              numpy.any
    numpy.round_                numpy.round
    numpy.msort                 numpy.sort(x, axis=0)               opwise.py2.library.msort
    numpy.in1d                  numpy.isin                          opwise.py2.library.in1d
    numpy.trapz                 numpy.trapezoid
    numpy.row_stack             numpy.vstack
    numpy.mat                   numpy.asmatrix
    numpy.cast                  x.astype(dtype)                     opwise.py2.library.cast
    numpy.issctype              an own check of the dtype           nothing
    numpy.issubclass_           issubclass
    numpy.issubsctype           numpy.issubdtype
    numpy.obj2sctype            numpy.dtype(x).type                 opwise.py2.library.scalar_type
    numpy.find_common_type      numpy.result_type                   opwise.py2.library.common_type
    numpy.asfarray              numpy.asarray(x, dtype=float)       opwise.py2.library.asfarray
    numpy.compat                the functions of Python 3           nothing
    numpy.tostring              x.tobytes()                         nothing
"""
_NUMPY_FROMSTRING = """
    numpy.fromstring            numpy.frombuffer                    opwise.py2.library.fromstring
"""
_SCIPY = """
    scipy.weave                 a C extension, for example by Cython  nothing
    scipy.misc.imread           imageio.v3.imread                   opwise.py2.library.imread
    scipy.misc.imsave           imageio.v3.imwrite                  opwise.py2.library.imsave
    scipy.misc.imresize         PIL.Image.Image.resize              opwise.py2.library.imresize
    scipy.misc.toimage          PIL.Image.fromarray                 opwise.py2.library.toimage
    scipy.misc.fromimage        numpy.asarray(image)                numpy.asarray
    scipy.misc.imrotate         scipy.ndimage.rotate                nothing
    scipy.misc.imfilter         scipy.ndimage                       nothing
    scipy.misc.bytescale        an explicit scaling                 opwise.py2.library.bytescale
    scipy.misc.lena             scipy.datasets.ascent
    scipy.misc.ascent           scipy.datasets.ascent
    scipy.misc.face             scipy.datasets.face
    scipy.misc.electrocardiogram  scipy.datasets.electrocardiogram
    scipy.misc.logsumexp        scipy.special.logsumexp
    scipy.misc.factorial        scipy.special.factorial
    scipy.misc.comb             scipy.special.comb
    scipy.misc.derivative       scipy.differentiate.derivative      nothing
    scipy.misc                  scipy.special or imageio            opwise.py2.library.scipy_misc
    scipy.signal.hann           scipy.signal.windows.hann
    scipy.signal.hanning        scipy.signal.windows.hann
    scipy.signal.hamming        scipy.signal.windows.hamming
    scipy.signal.gaussian       scipy.signal.windows.gaussian
    scipy.signal.blackman       scipy.signal.windows.blackman
    scipy.signal.bartlett       scipy.signal.windows.bartlett
    scipy.signal.kaiser         scipy.signal.windows.kaiser
    scipy.signal.triang         scipy.signal.windows.triang
    scipy.signal.tukey          scipy.signal.windows.tukey
    scipy.integrate.simps       scipy.integrate.simpson             opwise.py2.library.simps
    scipy.integrate.trapz       scipy.integrate.trapezoid
    scipy.integrate.cumtrapz    scipy.integrate.cumulative_trapezoid
    scipy.stats.betai           scipy.special.betainc
    scipy.linalg.pinv2          scipy.linalg.pinv
    scipy.linalg.expm2          scipy.linalg.expm
    scipy.linalg.expm3          scipy.linalg.expm
    scipy.linalg.kron           numpy.kron
    scipy.linalg.tri            numpy.tri
    scipy.linalg.tril           numpy.tril
    scipy.linalg.triu           numpy.triu
    scipy.stats.nanmean         numpy.nanmean
    scipy.stats.nanmedian       numpy.nanmedian
    scipy.stats.nanstd          numpy.nanstd(x, ddof=1)             nothing
    scipy.stats.chisqprob       scipy.stats.chi2.sf
    scipy.stats.binom_test      scipy.stats.binomtest(...).pvalue   nothing
    scipy.stats.itemfreq        numpy.unique(x, return_counts=True)  nothing
    scipy.special.btdtri        scipy.special.betaincinv
    scipy.spatial.distance.matching  scipy.spatial.distance.hamming
    scipy.interp                numpy.interp
    scipy.randn                 numpy.random.randn
    scipy.rand                  numpy.random.rand
    scipy.random                numpy.random
"""
# older releases of scipy had numpy's names; those of ``numpy.emath`` are complex below zero
_SCIPY_OF_NUMPY = "\n".join(
    f"scipy.{name}  numpy.{name}"
    for name in """
    abs absolute add all allclose amax amin angle any append apply_along_axis arange arccosh arcsinh
    arctan arctan2 argmax argmin argsort argwhere array array_equal asarray asmatrix atleast_1d
    atleast_2d average bincount c_ ceil clip column_stack complex128 complex64 concatenate conj
    conjugate convolve copy corrcoef cos cosh cov cross cumprod cumsum delete diag diagonal diff
    digitize divide dot e einsum empty empty_like equal exp expm1 eye fabs finfo flatnonzero fliplr
    flipud float32 float64 floor fmod full gradient hanning histogram histogram2d hstack hypot
    identity imag indices inf inner insert int32 int64 interp invert iscomplex isfinite isinf isnan
    isreal ix_ kron linspace load loadtxt log1p logical_and logical_not logical_or logspace matrix
    maximum mean median meshgrid mgrid minimum mod multiply nan nan_to_num nanmax nanmean nanmin
    nansum ndarray newaxis nonzero ogrid ones ones_like outer percentile pi poly1d polyfit polyval
    prod r_ ravel real repeat reshape roll roots round save savetxt savez searchsorted select
    setdiff1d shape sign sin sinc sinh size sort split squeeze std subtract sum tan tanh tensordot
    tile trace transpose tri tril triu uint8 unique unravel_index unwrap vander var vdot vectorize
    vsplit vstack where zeros zeros_like
    """.split()
)
_SCIPY_OF_EMATH = "\n".join(
    f"scipy.{name}  numpy.emath.{name}"
    for name in "arccos arcsin arctanh log log10 log2 logn power sqrt".split()
)
_MATPLOTLIB = """
    matplotlib.pyplot.hold      nothing: axes keep what they show   opwise.py2.library.ignore
    matplotlib.pyplot.ishold    True                                nothing
    matplotlib.pyplot.spectral  matplotlib.pyplot.nipy_spectral
    matplotlib.cm.spectral      matplotlib.cm.nipy_spectral
    matplotlib.cm.get_cmap      matplotlib.pyplot.get_cmap
    matplotlib.finance          the package mplfinance              nothing
    matplotlib.mlab.PCA         sklearn.decomposition.PCA           nothing
    matplotlib.mlab.normpdf     scipy.stats.norm.pdf
    matplotlib.mlab.rec2csv     numpy.savetxt                       nothing
    matplotlib.mlab.csv2rec     numpy.genfromtxt                    nothing
    matplotlib.mlab.griddata    scipy.interpolate.griddata
    matplotlib.nxutils          matplotlib.path.Path                nothing
    matplotlib.delaunay         matplotlib.tri                      nothing
    pylab.hold                  nothing: axes keep what they show   opwise.py2.library.ignore
"""
_OTHERS = """
    sklearn.cross_validation    sklearn.model_selection  opwise.py2.library.cross_validation
    sklearn.grid_search         sklearn.model_selection
    sklearn.learning_curve      sklearn.model_selection
    sklearn.datasets.fetch_mldata  sklearn.datasets.fetch_openml  nothing
    sklearn.datasets.load_boston   the data from their source     nothing
    sklearn.externals.joblib    joblib
    sklearn.externals.six       six
    pkg_resources               importlib's metadata and resources  opwise.py2.library.pkg_resources
    Image                       PIL.Image
    ImageDraw                   PIL.ImageDraw
    PIL.Image.ANTIALIAS         PIL.Image.LANCZOS
"""
# 0.22 renamed its modules, and 0.24 dropped the old names; the packages have the public names
_SKLEARN = "\n".join(
    f"sklearn.{package}.{old}  sklearn.{package}  sklearn.{package}.{new}"
    for package, modules in {
        "cluster": "k_means_ _kmeans hierarchical _agglomerative spectral _spectral",
        "datasets": "base _base samples_generator _samples_generator",
        "decomposition": "base _base nmf _nmf pca _pca truncated_svd _truncated_svd",
        "ensemble": "base _base forest _forest gradient_boosting _gb",
        "linear_model": "base _base logistic _logistic ridge _ridge"
        " stochastic_gradient _stochastic_gradient",
        "manifold": "t_sne _t_sne",
        "metrics": "classification _classification ranking _ranking regression _regression"
        " scorer _scorer",
        "mixture": "gaussian_mixture _gaussian_mixture",
        "neighbors": "base _base classification _classification kde _kde regression _regression",
        "neural_network": "multilayer_perceptron _multilayer_perceptron rbm _rbm",
        "preprocessing": "data _data label _label",
        "svm": "base _base classes _classes",
        "tree": "tree _classes",
        "utils": "testing _testing",
    }.items()
    for old, new in zip(modules.split()[::2], modules.split()[1::2], strict=True)
)

#: a builtin -> what became of it
BUILTINS: dict[str, Old] = _rows(_BUILTINS, SINCE_PYTHON_3)
#: the dotted name of a module, or of an attribute of one of a module -> what became of it
NAMES: dict[str, Old] = {
    **_rows(_PYTHON_3, SINCE_PYTHON_3),
    **_rows(_PYTHON_35, "gone since Python 3.11"),
    **_rows(_PYTHON_38, "gone since Python 3.8"),
    **_rows(_PYTHON_39, "gone since Python 3.9"),
    **_rows(_PYTHON_310, "gone since Python 3.10"),
    **_rows(_PYTHON_312, "gone since Python 3.12"),
    **_rows(_PYTHON_313, "gone since Python 3.13"),
    **_rows(_NUMPY_1, "gone from today's numpy"),
    **_rows(_NUMPY_BACK, "another type since numpy 2.0"),
    **_rows(_NUMPY_2, "gone since numpy 2.0"),
    **_rows(_NUMPY_FROMSTRING, "for text alone since numpy 2.3"),
    **_rows(_SCIPY, "gone from today's scipy"),
    **_rows(_SCIPY_OF_NUMPY, "gone from today's scipy"),
    **_rows(_SCIPY_OF_EMATH, "gone from today's scipy"),
    **_rows(_MATPLOTLIB, "gone from today's matplotlib"),
    **_rows(_OTHERS, "gone from today's releases"),
    **_rows(_SKLEARN, "gone since sklearn 0.24"),
}
#: functions of math whose arguments are numbers
MATH = (
    "acos acosh asin asinh atan atan2 atanh ceil cos cosh degrees erf erfc exp expm1 fabs floor "
    "fmod gamma hypot isinf isnan lgamma log log10 log1p pow radians sin sinh sqrt tan tanh"
).split()
#: functions of numpy -> where their shape is: the position, the keyword
SIZES = {
    **dict.fromkeys("zeros ones empty full".split(), (0, "shape")),
    "tile": (1, "reps"),
    "repeat": (1, "repeats"),
    "reshape": (1, "newshape"),
    "linspace": (2, "num"),
    "eye": (0, "N"),
    "identity": (0, "n"),
}
#: functions of numpy.random, and methods of its RandomState -> where their shape is
RANDOM_SIZES = {
    **dict.fromkeys("rand randn".split(), (0, "")),
    **dict.fromkeys("random_sample standard_normal".split(), (0, "size")),
    **dict.fromkeys("exponential poisson".split(), (1, "size")),
    **dict.fromkeys("beta binomial gamma laplace normal randint uniform".split(), (2, "size")),
}
#: names that exist, but that programs for Python 2 mean otherwise -> what --py2 gives
CHANGED: dict[str, str] = {
    "pickle": "opwise.py2.pickles",
    "numpy.array": "opwise.py2.library.array",
    "numpy.asarray": "opwise.py2.library.asarray",
    "numpy.asanyarray": "opwise.py2.library.asanyarray",
    "numpy.copy": "opwise.py2.library.copied",
    "csv.reader": "opwise.py2.library.csv_reader",
    "csv.DictReader": "opwise.py2.library.csv_dict_reader",
    "matplotlib.use": "opwise.py2.library.matplotlib_use",
    "matplotlib.pyplot.gca": "opwise.py2.library.pyplot_gca",
    "pylab.gca": "opwise.py2.library.pyplot_gca",
    **{
        f"{module}.{name}": f"opwise.py2.library.pyplot_{name}"
        for module in ("matplotlib.pyplot", "pylab")
        for name in ("pcolor", "pcolormesh")
    },
    "subprocess.Popen": "opwise.py2.binary.Popen",
    "subprocess.check_output": "opwise.py2.binary.check_output",
    "hashlib.new": "opwise.py2.binary.new_hash",
    **{
        f"hashlib.{name}": f"opwise.py2.binary.{name}"
        for name in "md5 sha1 sha224 sha256 sha384 sha512".split()
    },
    "zipfile.ZipFile": "opwise.py2.binary.ZipFile",
    "tarfile.TarFile": "opwise.py2.binary.TarFile",
    "tarfile.open": "opwise.py2.binary.tar_open",
    "socket.socket": "opwise.py2.binary.Socket",
    "socket.create_connection": "opwise.py2.binary.create_connection",
    "socket.socketpair": "opwise.py2.binary.socketpair",
    **{f"base64.{name}": f"opwise.py2.binary.{name}" for name in ("b64encode", "b64decode")},
    **{f"binascii.{name}": f"opwise.py2.binary.{name}" for name in ("hexlify", "unhexlify")},
    **{f"zlib.{name}": f"opwise.py2.binary.{name}" for name in ("compress", "decompress")},
    **{f"struct.{name}": f"opwise.py2.binary.{name}" for name in ("pack", "unpack")},
    **{
        f"re.{name}": f"opwise.py2.binary.re_{name}"
        for name in "findall finditer match search split sub".split()
    },
    "zlib.crc32": "opwise.py2.binary.crc32",
    "zlib.adler32": "opwise.py2.binary.adler32",
    "gzip.open": "opwise.py2.binary.gzip_open",
    "gzip.GzipFile": "opwise.py2.binary.GzipFile",
    "bz2.BZ2File": "opwise.py2.binary.BZ2File",
    "tempfile.TemporaryFile": "opwise.py2.binary.temporary_file",
    "tempfile.NamedTemporaryFile": "opwise.py2.binary.named_temporary_file",
    **{f"math.{name}": f"opwise.py2.library.math.{name}" for name in MATH},
    **{f"numpy.{name}": f"opwise.py2.library.sized.{name}" for name in SIZES},
    **{f"numpy.random.{name}": f"opwise.py2.library.sized_random.{name}" for name in RANDOM_SIZES},
}

#: those that programs for earlier versions of Python 3 mean otherwise, too
CHANGED_SINCE = (
    "pickle",
    "numpy.array",
    "numpy.asarray",
    "numpy.asanyarray",
    "numpy.copy",
    "matplotlib.use",
    "matplotlib.pyplot.gca",
    "pylab.gca",
    *(f"{module}.pcolor{end}" for module in ("matplotlib.pyplot", "pylab") for end in ("", "mesh")),
    *(f"numpy.{name}" for name in SIZES),
    *(f"numpy.random.{name}" for name in RANDOM_SIZES),
)

# --- attributes of objects ------------------------------------------------------------------------

# --py2 gives the function of ``opwise.py2.methods`` with the name of the attribute; if there is
# none, the attribute after the last dot of what is to be written
_METHODS_3 = """
    has_key                     key in d
    iteritems                   d.items()
    iterkeys                    d.keys()
    itervalues                  d.values()
    viewitems                   d.items
    viewkeys                    d.keys
    viewvalues                  d.values
    next                        next(iterator)
    xreadlines                  for line in file
    func_name                   f.__name__
    func_code                   f.__code__
    func_defaults               f.__defaults__
    func_globals                f.__globals__
    func_doc                    f.__doc__
    func_dict                   f.__dict__
    func_closure                f.__closure__
    im_func                     method.__func__
    im_self                     method.__self__
    im_class                    type(method.__self__)
    message                     str(error)
"""
_METHODS_UNITTEST = """
    assertEquals                self.assertEqual
    assertNotEquals             self.assertNotEqual
    assertAlmostEquals          self.assertAlmostEqual
    assertNotAlmostEquals       self.assertNotAlmostEqual
    assertRegexpMatches         self.assertRegex
    assertRaisesRegexp          self.assertRaisesRegex
    assertItemsEqual            self.assertCountEqual
    assert_                     self.assertTrue
    failUnless                  self.assertTrue
    failUnlessEqual             self.assertEqual
    failIf                      self.assertFalse
"""
_METHODS_NUMPY = """
    itemset                     x[index] = value
    newbyteorder                x.view(x.dtype.newbyteorder())
    ptp                         numpy.ptp(x)
    tostring                    x.tobytes
"""
_METHODS_MATPLOTLIB = """
    set_axis_bgcolor            axes.set_facecolor
    get_axis_bgcolor            axes.get_facecolor
    w_xaxis                     axes.xaxis
    w_yaxis                     axes.yaxis
    w_zaxis                     axes.zaxis
    hold                        nothing: axes keep what they show
    ishold                      nothing: axes keep what they show
"""

#: an attribute of objects -> what became of it
METHODS: dict[str, Old] = {
    **_rows(_METHODS_3, SINCE_PYTHON_3),
    **_rows(_METHODS_UNITTEST, "gone since Python 3.12"),
    **_rows(_METHODS_NUMPY, "gone from today's numpy"),
    **_rows(_METHODS_MATPLOTLIB, "gone from today's matplotlib"),
}
#: those that objects of other classes have today -> what lacks them: in a program for Python 3, no
#: sure breakage
_LACKED_BY = {
    "message": "an exception",
    "newbyteorder": "an array",
    "next": "an iterator",
    "ptp": "an array",
    "tostring": "an array",
}
#: attributes that exist, but that programs for Python 2 mean otherwise
CHANGED_METHODS = {"keys", "values", "items", "sort", "decode", "encode", "gca", "pcolor"}
CHANGED_METHODS |= {"pcolormesh", "format", "write"}
#: those that programs for earlier versions of Python 3 mean otherwise, too
CHANGED_METHODS_SINCE = {"gca", "pcolor", "pcolormesh"}

#: attributes of what h5py 2 gave: datasets with a value, and bytes where there is text today; the
#: text of a program does not say what has them, so ``opwise doctor`` reports none
H5PY_METHODS = {"value", "decode"}

#: attributes that converted programs look up by ``opwise.py2.lookup``
ATTRIBUTES = {name.rpartition(".")[2] for name in [*NAMES, *CHANGED] if "." in name}
ATTRIBUTES |= {*METHODS, *CHANGED_METHODS, *H5PY_METHODS, *RANDOM_SIZES}

# --- patterns -------------------------------------------------------------------------------------

#: a function of (a node, what is known of the module): the text of a breakage, or None
Pattern = Callable[[ast.AST, Facts], str | None]
PATTERNS: list[Pattern] = []


def _pattern(function: Pattern) -> Pattern:
    PATTERNS.append(function)
    return function


@_pattern
def float_index(node: ast.AST, facts: Facts) -> str | None:
    """Report a quotient as an index or a count."""
    if isinstance(node, ast.Subscript):
        return _float_quotient(facts.parts(node.slice), facts)
    if isinstance(node, ast.Call) and facts.dotted(node.func) in ("range", "xrange"):
        return _float_quotient(node.args, facts)
    return None


@_pattern
def float_length(node: ast.AST, facts: Facts) -> str | None:
    """Report a quotient as a length or in a shape."""
    if isinstance(node, ast.Call) and facts.dotted(node.func) in _MAKE_ARRAYS:
        return _float_quotient([p for arg in node.args[:1] for p in facts.parts(arg)], facts)
    return None


_MAKE_ARRAYS = {"numpy.zeros", "numpy.ones", "numpy.empty", "numpy.eye"}


def _float_quotient(where: Iterable[ast.expr], facts: Facts) -> str | None:
    for part in where:
        if not facts.true_division and isinstance(part, ast.BinOp) and facts.quotient(part):
            return (
                f"{ast.unparse(part)} is a float in Python 3, and no index or length: "
                "write // for /"
            )
    return None


@_pattern
def integer_division(node: ast.AST, facts: Facts) -> str | None:
    """Report a quotient of two integers, in programs for Python 2."""
    if not facts.is_python2 or facts.true_division:
        return None
    if not isinstance(node, ast.BinOp | ast.AugAssign):
        return None
    left, right = (
        (node.left, node.right) if isinstance(node, ast.BinOp) else (node.target, node.value)
    )
    if not isinstance(node.op, ast.Div) or not (facts.is_int(left) and facts.is_int(right)):
        return None
    return f"{ast.unparse(node)} divides integers, and gives a float in Python 3: write // for /"


@_pattern
def list_of_slices(node: ast.AST, facts: Facts) -> str | None:
    """Report x[[slice(...), ...]]: numpy 1.23 indexes by a list as by an array."""
    if isinstance(node, ast.Subscript) and facts.is_list_of_slices(node.slice):
        return (
            f"an index that is a list of slices is gone since numpy 1.23: write "
            f"{ast.unparse(node.value)}[tuple({ast.unparse(node.slice)})]"
        )
    return None


@_pattern
def array_equals_list(node: ast.AST, facts: Facts) -> str | None:
    """Report x == []: an array is unequal to a list of another length by an error."""
    match node:
        case ast.Compare(left=left, ops=[ast.Eq() | ast.NotEq()], comparators=[right]):
            for side, other in ((left, right), (right, left)):
                if isinstance(side, ast.List) and facts.is_array(other):
                    return (
                        f"{ast.unparse(node)} is an error since numpy 1.25 for an array of another "
                        "length: write numpy.array_equal, or compare the size"
                    )
    return None


@_pattern
def truth_of_array(node: ast.AST, facts: Facts) -> str | None:
    """Report ``if x`` for an array, which may be empty."""
    match node:
        case ast.If(test=test) | ast.While(test=test) | ast.IfExp(test=test):
            pass
        case ast.UnaryOp(op=ast.Not(), operand=test):
            pass
        case _:
            return None
    for part in test.values if isinstance(test, ast.BoolOp) else [test]:
        if facts.is_array(part):
            text = ast.unparse(part)
            return f"an empty array is no longer false since numpy 2.2: write {text}.size > 0"
    return None


@_pattern
def equals_none(node: ast.AST, facts: Facts) -> str | None:
    """Report ``x == None`` for an array."""
    match node:
        case ast.Compare(
            left=left, ops=[ast.Eq() | ast.NotEq() as op], comparators=[ast.Constant(None)]
        ) if facts.is_array(left):
            word = "is" if isinstance(op, ast.Eq) else "is not"
            return (
                f"{ast.unparse(node)} compares each element since numpy 1.13: write "
                f"{ast.unparse(left)} {word} None"
            )
    return None


@_pattern
def flat_mesh(node: ast.AST, facts: Facts) -> str | None:
    """Report pcolormesh(x, y, c, shading='flat')."""
    match node:
        case ast.Call(func=ast.Attribute(attr=name) | ast.Name(name), keywords=keywords) if (
            name in ("pcolor", "pcolormesh")
        ):
            if any(
                k.arg == "shading" and isinstance(k.value, ast.Constant) and k.value.value == "flat"
                for k in keywords
            ):
                return (
                    f"{name}(x, y, c, shading='flat') takes one more of x and y than of c since "
                    "matplotlib 3.5: write c[:-1, :-1], or shading='nearest'"
                )
    return None


@_pattern
def pickle_of_python2(node: ast.AST, facts: Facts) -> str | None:
    """Report pickle.load without an encoding.

    In a program for Python 3 it is wrong only if Python 2 wrote the file; what ``loads`` is given
    there, the program mostly wrote itself.
    """
    if isinstance(node, ast.Call) and not any(k.arg in ("encoding", None) for k in node.keywords):
        name = facts.dotted(node.func)
        if name in _LOADS if facts.is_python2 else name == "pickle.load":
            return f"{name} needs an encoding for files of Python 2: add encoding='latin1'"
    return None


_LOADS = ("pickle.load", "pickle.loads", "cPickle.load", "cPickle.loads")


@_pattern
def no_list(node: ast.AST, facts: Facts) -> str | None:
    """Report d.keys()[0], map(f, x)[1:], d.items().sort(), range(3) + range(4), len(zip(a, b))."""
    match node:
        case ast.Subscript(value=value):
            return _as_list([value], facts, {"map", "filter", "zip"}, views=True)
        case ast.Attribute(value=value, attr="sort" | "append" | "extend" | "reverse"):
            return _as_list([value], facts, {"map", "filter", "zip", "range"}, views=True)
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return _as_list([left, right], facts, {"map", "filter", "zip", "range"}, views=True)
        case ast.Call(func=function, args=[value, *_]):
            if facts.dotted(function) in ("numpy.array", "numpy.asarray"):
                return _as_list([value], facts, {"map", "filter", "zip"}, views=True)
            if facts.dotted(function) == "len":
                return _as_list([value], facts, {"map", "filter", "zip"}, views=False)
    return None


def _as_list(values: list[ast.expr], facts: Facts, functions: set[str], views: bool) -> str | None:
    """Return the text for the first of ``values`` that was a list in Python 2.

    functions: which calls count. views: whether those of keys(), values() and items() do.
    """
    for value in values:
        match value:
            case ast.Call(func=ast.Attribute(attr="keys" | "values" | "items"), args=[]):
                found = views
            case ast.Call(func=function):
                found = facts.dotted(function) in functions
            case _:
                found = False
        if found:
            text = ast.unparse(value)
            return f"{text} is no list since Python 3.0: write list({text})"
    return None


@_pattern
def sorted_by_cmp(node: ast.AST, facts: Facts) -> str | None:
    """Report sorted(x, cmp=f) and x.sort(f)."""
    if not isinstance(node, ast.Call):
        return None
    is_sort = isinstance(node.func, ast.Attribute) and node.func.attr == "sort"
    is_sorted = facts.dotted(node.func) == "sorted"
    if (is_sort or is_sorted) and any(keyword.arg == "cmp" for keyword in node.keywords):
        return "sorting by cmp is gone since Python 3.0: write key=functools.cmp_to_key(cmp)"
    return None


@_pattern
def normed_histogram(node: ast.AST, facts: Facts) -> str | None:
    """Report hist(x, normed=True)."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute | ast.Name):
        name = node.func.attr if isinstance(node.func, ast.Attribute) else node.func.id
        if name in ("hist", "histogram") and any(k.arg == "normed" for k in node.keywords):
            return f"{name}(normed=...) is gone: write density=..."
    return None


@_pattern
def projection_of_gca(node: ast.AST, facts: Facts) -> str | None:
    """Report figure.gca(projection='3d')."""
    is_gca = isinstance(node, ast.Call) and (
        node.func.attr == "gca" if isinstance(node.func, ast.Attribute) else
        facts.dotted(node.func) in ("matplotlib.pyplot.gca", "pylab.gca")
    )  # fmt: skip
    if is_gca and isinstance(node, ast.Call) and node.keywords:
        return "gca takes no arguments since matplotlib 3.7: write add_subplot(...)"
    return None


@_pattern
def warning_of_use(node: ast.AST, facts: Facts) -> str | None:
    """Report matplotlib.use(backend, warn=False)."""
    if isinstance(node, ast.Call) and facts.dotted(node.func) == "matplotlib.use":
        if any(keyword.arg == "warn" for keyword in node.keywords):
            return "matplotlib.use(warn=...) is gone since matplotlib 3.3: leave warn out"
    return None


# --- what a module has of it ----------------------------------------------------------------------


@dataclass(frozen=True, order=True)
class Finding:
    """A breakage in a program."""

    line: int
    text: str
    #: whether ``opwise run --py2`` or ``--py3`` runs the line as it is
    given: bool = field(default=True, compare=False)
    #: whether the line is wrong; False if that depends on values that its text does not tell
    certain: bool = field(default=True, compare=False)


#: the patterns that programs have to change
_NOT_GIVEN = {float_index, normed_histogram}
#: those that are wrong for some values alone
_BY_VALUE = {array_equals_list, truth_of_array, equals_none, flat_mesh}


def find(
    tree: ast.Module,
    rewritten: list[tuple[str, int]],
    others: Callable[[], Iterable[ast.Module]] = tuple,
) -> tuple[list[Finding], bool]:
    """Return (the breakages of a module, by line; whether it was written for Python 2).

    tree, rewritten: as ``convert.parse`` returns them. others: returns the other modules of the
    program; it is called if attributes that they define matter.
    """
    facts = Facts(tree)
    free = [(name, line) for name, line in facts.free if name not in facts.guarded]
    facts.is_python2 = bool(rewritten) or any(name in BUILTINS for name, _ in free)
    found = {Finding(line, SYNTAX[what]) for what, line in rewritten}
    found |= {Finding(line, BUILTINS[name].text) for name, line in free if name in BUILTINS}
    for name, line in facts.used:
        for known in _prefixes(name):
            if known in facts.guarded:
                break
            if known in NAMES:
                facts.is_python2 |= NAMES[known].since == SINCE_PYTHON_3
                found.add(Finding(line, NAMES[known].text, bool(NAMES[known].given)))
                break
    # a program for Python 3 that defines an attribute means its own
    gone = METHODS.keys() - (set() if facts.is_python2 else _defined(tree))
    if not facts.is_python2 and any(_reads(node, gone) for node in ast.walk(tree)):
        gone = gone.difference(*map(_defined, others()))
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and _reads(node, gone):
            if not facts.dotted(node):
                certain = facts.is_python2 or node.attr not in _LACKED_BY
                said = f".{METHODS[node.attr].text}"
                if not certain:
                    said = said.replace(" is ", f" of {_LACKED_BY[node.attr]} is ", 1)
                found.add(Finding(node.lineno, said, certain=certain))
        for pattern in PATTERNS:
            text = pattern(node, facts)
            if text:
                line = node.lineno  # type: ignore[attr-defined]
                certain = pattern not in _BY_VALUE and (
                    facts.is_python2 or pattern is not pickle_of_python2
                )
                found.add(Finding(line, text, pattern not in _NOT_GIVEN, certain))
    return sorted(found), facts.is_python2


def _reads(node: ast.AST, names: Collection[str]) -> bool:
    """Return whether a node is an attribute with one of some names."""
    return isinstance(node, ast.Attribute) and node.attr in names


def _defined(tree: ast.Module) -> set[str]:
    """Return the names of the attributes that a module gives objects, and of its functions."""
    found = set()
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                found.add(name)
            case ast.Attribute(attr=name, ctx=ast.Store()):
                found.add(name)
            case ast.ClassDef(body=body):
                found.update(
                    part.id for one in body
                    if isinstance(one, ast.Assign | ast.AnnAssign)
                    for target in (one.targets if isinstance(one, ast.Assign) else [one.target])
                    for part in ast.walk(target) if isinstance(part, ast.Name)
                )  # fmt: skip
    return found


def _prefixes(name: str) -> list[str]:
    """Return a dotted name and its parents, the longest first."""
    parts = name.split(".")
    return [".".join(parts[:k]) for k in range(len(parts), 0, -1)]
