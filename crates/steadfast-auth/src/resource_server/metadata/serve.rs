//! Serves the protected resource metadata document.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN, ALLOW, CONTENT_TYPE,
    HeaderValue,
};
use http::{Method, Request, Response, StatusCode};
use tower_layer::Layer;
use tower_service::Service;

use super::{ResourceMetadata, WELL_KNOWN};

const METHODS: HeaderValue = HeaderValue::from_static("GET, HEAD, OPTIONS");
const ANY: HeaderValue = HeaderValue::from_static("*");

/// A tower layer that serves the metadata document, and passes all other requests on. Apply the metadata layer after (outside
/// of) [`BearerLayer`](crate::resource_server::BearerLayer), since readers of the document have no token yet.
#[derive(Clone, Debug)]
pub struct MetadataLayer(Arc<ResourceMetadataDocument>);

#[derive(Clone, Debug)]
struct ResourceMetadataDocument {
    path: String,
    at_root: bool,
    json: Bytes,
}

impl MetadataLayer {
    pub(super) fn new(metadata: &ResourceMetadata) -> Self {
        Self(Arc::new(ResourceMetadataDocument {
            path: metadata.well_known_path(),
            at_root: false,
            json: metadata.json(),
        }))
    }

    /// Also serves the metadata document at the well-known prefix without the path of the resource, for clients that
    /// look only there. Do not serve the metadata document without the path of the resource on a host with several
    /// resources.
    pub fn at_root(mut self) -> Self {
        Arc::make_mut(&mut self.0).at_root = true;
        self
    }
}

impl<S> Layer<S> for MetadataLayer {
    type Service = MetadataService<S>;

    fn layer(&self, inner: S) -> MetadataService<S> {
        MetadataService { document: self.0.clone(), inner }
    }
}

/// The service that [`MetadataLayer`] produces.
#[derive(Clone, Debug)]
pub struct MetadataService<S> {
    document: Arc<ResourceMetadataDocument>,
    inner: S,
}

impl<S, B, R> Service<Request<B>> for MetadataService<S>
where
    S: Service<Request<B>, Response = Response<R>>,
    S::Future: Send + 'static,
    S::Error: Send + 'static,
    R: From<Bytes> + Send + 'static,
{
    type Response = Response<R>;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Response<R>, S::Error>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        if self.document.is_at(request.uri().path()) {
            let response = self.document.response(request.method());
            Box::pin(std::future::ready(Ok(response)))
        } else {
            Box::pin(self.inner.call(request))
        }
    }
}

impl ResourceMetadataDocument {
    fn is_at(&self, path: &str) -> bool {
        path == self.path || (self.at_root && path == WELL_KNOWN)
    }

    /// The response with the metadata document. The metadata document is public, so web pages of any origin may read it.
    fn response<R: From<Bytes>>(&self, method: &Method) -> Response<R> {
        let (status, body) = match *method {
            Method::GET => (StatusCode::OK, self.json.clone()),
            Method::HEAD => (StatusCode::OK, Bytes::new()),
            Method::OPTIONS => (StatusCode::NO_CONTENT, Bytes::new()),
            _ => (StatusCode::METHOD_NOT_ALLOWED, Bytes::new()),
        };
        let mut response = Response::new(R::from(body));
        *response.status_mut() = status;
        let headers = response.headers_mut();
        headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, ANY);
        match status {
            StatusCode::OK => {
                headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
            }
            StatusCode::NO_CONTENT => {
                headers.insert(ACCESS_CONTROL_ALLOW_METHODS, METHODS);
                headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, ANY);
            }
            _ => {
                headers.insert(ALLOW, METHODS);
            }
        }
        response
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::{BodyExt, Full};
    use tower::ServiceExt;

    use super::*;

    const PATH: &str = "/.well-known/oauth-protected-resource/mcp";

    async fn asked(layer: MetadataLayer, method: &str, uri: &str) -> Response<Bytes> {
        let inner = tower::service_fn(async |_: Request<()>| {
            Ok::<_, std::convert::Infallible>(Response::new(Full::<Bytes>::from("inner")))
        });
        let request = Request::builder().method(method).uri(uri).body(()).unwrap();
        let (parts, body) = layer.layer(inner).oneshot(request).await.unwrap().into_parts();
        Response::from_parts(parts, body.collect().await.unwrap().to_bytes())
    }

    fn layer() -> MetadataLayer {
        ResourceMetadata::new("https://a.example/mcp", ["https://auth.example.com"]).unwrap().layer()
    }

    #[tokio::test]
    async fn the_document_is_at_its_path_for_every_origin() {
        let response = asked(layer(), "GET", PATH).await;
        assert_eq!(response.status(), 200);
        assert_eq!(response.headers()[CONTENT_TYPE], "application/json");
        assert_eq!(response.headers()[ACCESS_CONTROL_ALLOW_ORIGIN], "*");
        let document: serde_json::Value = serde_json::from_slice(response.body()).unwrap();
        assert_eq!(document["resource"], "https://a.example/mcp");
    }

    #[tokio::test]
    async fn other_methods_are_not_allowed() {
        for method in ["POST", "PUT", "DELETE", "PATCH"] {
            let response = asked(layer(), method, PATH).await;
            assert_eq!(response.status(), 405, "{method}");
            assert_eq!(response.headers()[ALLOW], "GET, HEAD, OPTIONS");
        }
    }

    #[tokio::test]
    async fn a_preflight_allows_the_headers_that_mcp_clients_send() {
        let response = asked(layer(), "OPTIONS", PATH).await;
        assert_eq!(response.status(), 204);
        assert_eq!(response.headers()[ACCESS_CONTROL_ALLOW_HEADERS], "*");
    }

    #[tokio::test]
    async fn other_paths_go_through() {
        for path in ["/mcp", WELL_KNOWN, "/.well-known/oauth-protected-resource/mcp/x"] {
            assert_eq!(asked(layer(), "GET", path).await.body(), "inner", "{path}");
        }
    }

    #[tokio::test]
    async fn the_root_serves_it_too_if_that_was_asked_for() {
        assert_ne!(asked(layer().at_root(), "GET", WELL_KNOWN).await.body(), "inner");
    }
}
