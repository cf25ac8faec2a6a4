"""Convolutions and pooling of images and volumes."""
