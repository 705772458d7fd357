//! What scripts are drawn with: random numbers from a seed, biases towards what is rare, and a search for a smaller script.

pub(crate) mod bias;
pub(crate) mod changes;
pub(crate) mod rng;
pub(crate) mod shrink;
