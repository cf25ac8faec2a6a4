"""The logger ``theano``, for programs that configure it; opwise itself uses warnings."""

import logging

theano_logger = logging.getLogger("theano")
logging_default_formatter = logging.Formatter("%(levelname)s (%(name)s): %(message)s")
logging_default_handler = logging.StreamHandler()
logging_default_handler.setFormatter(logging_default_formatter)


def has_handlers(logger):
    """Return whether a logger, or one above it, has a handler."""
    return logger.hasHandlers()


def disable_log_handler(logger=theano_logger, handler=logging_default_handler):
    """Remove a handler from a logger."""
    logger.removeHandler(handler)


if not has_handlers(theano_logger):
    theano_logger.addHandler(logging_default_handler)
