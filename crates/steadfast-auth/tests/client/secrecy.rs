//! No secret appears in `Debug` output or logs of the client.

use std::fmt::Write as _;
use std::io;
use std::sync::{Arc, Mutex};

use serde_json::json;
use steadfast_auth::client::{Authorizer, MemoryTokenStore, OAuthClientSettings};
use tracing_subscriber::fmt::MakeWriter;

use crate::site::{Site, SiteOptions, call};

/// All log output.
#[derive(Clone, Default)]
struct LogBuffer(Arc<Mutex<Vec<u8>>>);

impl io::Write for LogBuffer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for LogBuffer {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

#[tokio::test(flavor = "current_thread")]
async fn no_token_code_or_secret_is_logged_or_printed() {
    let heard = LogBuffer::default();
    let subscriber =
        tracing_subscriber::fmt().with_max_level(tracing::Level::TRACE).with_writer(heard.clone()).finish();
    // With a single scoped subscriber, tracing could cache a call site as disabled if another test's thread reaches it first.
    let listening = tracing::Dispatch::new(subscriber);
    let _other = tracing::Dispatch::new(tracing_subscriber::registry());
    let _guard = tracing::dispatcher::set_default(&listening);

    let more = json!({"token_endpoint_auth_methods_supported": ["client_secret_basic"]});
    let secret = Some("s3cr3t");
    let options =
        SiteOptions { more, client_secret: secret, lifetimes: vec![0, 0], revokes: true, ..SiteOptions::default() };
    let site = Site::start(options).await;
    let store = MemoryTokenStore::new();
    let builder =
        site.authorizer(OAuthClientSettings::new("Test").registered(("me", "s3cr3t").into())).store(store.clone());
    let mut said = format!("{builder:?}");
    let authorizer: Authorizer = builder.build();
    call(&authorizer, &site.url()).await.unwrap();
    // The refresh token is used up, and the server repeats it in its error response.
    site.forget_refresh_tokens();
    call(&authorizer, &site.url()).await.unwrap();
    authorizer.sign_out().await.unwrap();
    let attempt = authorizer.attempt(http::Method::POST, &site.url());
    let _ = write!(said, "{authorizer:?} {store:?} {attempt:?}");
    said += &String::from_utf8_lossy(&heard.0.lock().unwrap());

    for expected in ["Visit(", "Authorized(", "invalid_grant", "revocation request"] {
        assert!(said.contains(expected), "nothing was heard of {expected:?} in {said}");
    }
    for secret in ["access-", "refresh-", "code-", "s3cr3t", "state="] {
        assert!(!said.contains(secret), "{secret} in {said}");
    }
}
