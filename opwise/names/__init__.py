"""The names of Theano: tables of where opwise has them, the record of those that its releases had,
placeholders for those that opwise lacks, and what only old programs use."""
