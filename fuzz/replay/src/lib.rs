//! Nothing: the replay of the fuzz corpus is this package's tests.
