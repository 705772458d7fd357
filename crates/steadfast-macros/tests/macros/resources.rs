//! `#[resource]` on functions and on methods.

use std::sync::Arc;

use steadfast::prelude::*;
use steadfast::server::RequiredClientCapability;
use steadfast::{
    Annotations, CacheHints, CacheScope, Reference, ResourceContents, ServerResource, ServerResourceTemplate,
    model::{CompleteParams, code, request},
};

/// A note.
#[resource("note://{folder}/{+path}{?page}", name = "note", title = "Note", mime_type = "text/plain")]
async fn note(path: String, folder: u8, #[arg(default = 1)] page: u32, _ctx: Context) -> Option<String> {
    (folder < 9).then(|| format!("{folder} {path} {page}"))
}

#[resource("words://all")]
fn words(#[state] all: Arc<Vec<String>>) -> steadfast::ToolResult<String> {
    Ok(all.first().ok_or("there are no words")?.clone())
}

const DAY: CacheHints = CacheHints::new(86_400_000, CacheScope::Public);

#[resource(
    "image://dot",
    size = 6,
    annotations = Annotations::new().with_priority(0.5),
    cache = DAY,
    needs(roots, sampling)
)]
async fn dot() -> &'static [u8] {
    b"GIF89a"
}

#[resource("image://{name}", annotations = Annotations::new().with_priority(0.25), cache = DAY, needs = roots)]
async fn image(name: String) -> String {
    name
}

struct Weather {
    unit: &'static str,
}

#[server]
impl Weather {
    /// The weather now.
    #[resource("weather://{city}/now", icon = "https://example.com/sun.png")]
    async fn now(&self, #[arg(complete = ["Bergen", "Oslo"])] city: String) -> String {
        format!("20 {} in {city}", self.unit)
    }

    /// All cities.
    #[resource("weather://cities", mime_type = "application/octet-stream")]
    fn cities(&self) -> Vec<u8> {
        b"Oslo".to_vec()
    }
}

async fn read(template: &ServerResourceTemplate, uri: &str) -> Result<Vec<ResourceContents>, i64> {
    template.read(uri).await.map(|read| read.contents).map_err(|error| error.object().code)
}

#[tokio::test]
async fn variables_are_parameters() {
    let note = note();
    let definition = note.definition();
    assert_eq!((note.uri_template(), note.name()), ("note://{folder}/{+path}{?page}", "note"));
    assert_eq!((definition.title.as_deref(), definition.description.as_deref()), (Some("Note"), Some("A note.")));
    let expected = ResourceContents::text("note://7/a/b?page=3", "7 a/b 3").with_mime_type("text/plain");
    assert_eq!(read(&note, "note://7/a/b?page=3").await.unwrap(), [expected]);
    let expected = ResourceContents::text("note://7/a", "7 a 1").with_mime_type("text/plain");
    assert_eq!(read(&note, "note://7/a").await.unwrap(), [expected]);
    for uri in ["note://9/a", "note://x/a", "note://300/a", "other://7/a"] {
        assert_eq!(read(&note, uri).await.unwrap_err(), code::RESOURCE_NOT_FOUND, "{uri}");
    }
}

#[tokio::test]
async fn size_annotations_cache_and_needs_are_options() {
    let (dot, image) = (dot(), image());
    let priority = |annotations: &Option<Annotations>| annotations.as_ref().and_then(|all| all.priority);
    assert_eq!((dot.definition().size, priority(&dot.definition().annotations)), (Some(6), Some(0.5)));
    assert_eq!(
        (dot.needs(), image.needs()),
        (
            &[RequiredClientCapability::Roots, RequiredClientCapability::Sampling][..],
            &[RequiredClientCapability::Roots][..]
        )
    );
    assert_eq!(priority(&image.definition().annotations), Some(0.25));
    assert_eq!(dot.read().await.unwrap().cache(), Some(DAY));
    assert_eq!(image.read("image://a").await.unwrap().cache(), Some(DAY));
}

#[tokio::test]
async fn a_fixed_uri_is_a_resource() {
    let words: ServerResource = words(Arc::new(vec!["hello".to_owned()]));
    assert_eq!((words.uri(), words.name()), ("words://all", "words"));
    assert_eq!(words.read().await.unwrap().contents, [ResourceContents::text("words://all", "hello")]);
}

#[tokio::test]
async fn methods_are_resources_of_the_server() {
    let server = Weather { unit: "C" }.into_server();
    let cities = server.resource("weather://cities").unwrap();
    assert_eq!(cities.definition().description.as_deref(), Some("All cities."));
    assert_eq!(cities.definition().mime_type.as_deref(), Some("application/octet-stream"));
    let now = server.resource_template("weather://{city}/now").unwrap();
    assert_eq!(now.definition().icons[0].src, "https://example.com/sun.png");
    let contents = read(&now, "weather://Oslo/now").await.unwrap();
    assert_eq!(contents, [ResourceContents::text("weather://Oslo/now", "20 C in Oslo")]);
}

#[tokio::test]
async fn variables_are_completed() {
    let client = Client::connect(Weather { unit: "C" }).await.unwrap();
    let params = CompleteParams::new(Reference::resource("weather://{city}/now"), "city", "o");
    let completion = client.call::<request::Complete>(params).await.unwrap().completion;
    assert_eq!(completion.values, ["Oslo"]);
}
