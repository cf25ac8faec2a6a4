"""Operations that draw random numbers; the streams that keep their states are in ``compile``."""
