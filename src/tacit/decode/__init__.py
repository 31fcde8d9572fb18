"""Decoders for mechanisms without a closed-form inverse: maximum likelihood (EM), and sparse regression for RAPPOR."""
