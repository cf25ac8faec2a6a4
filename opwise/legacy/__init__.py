"""Interfaces of Theano that only old programs use; nothing else in opwise imports them."""
