"""``theano.version``: the release of Theano whose language opwise compiles."""

FALLBACK_VERSION = short_version = full_version = version = "1.0.5"
git_revision = "f3bb5b755ec5e92fb60b5364d83a10878fa9a211"
release = True
info = {
    "version": version,
    "full-revisionid": git_revision,
    "dirty": False,
    "error": None,
    "date": "2020-07-27T18:09:29+0200",
}


def get_versions():
    """Return a dict with the version and the revision."""
    return dict(info)
