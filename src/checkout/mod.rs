//! The domain of a checkout.
