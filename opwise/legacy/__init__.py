"""What Theano had and only old programs use; nothing else in opwise imports it."""
