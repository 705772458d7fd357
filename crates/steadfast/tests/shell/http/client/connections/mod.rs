//! TCP and TLS connections of HTTP clients: the pool, proxies, certificates.

mod pool;
mod proxies;
pub(super) mod tls;
