//! Fixed resources, and a resource template.

use serde::Deserialize;
use serde_json::json;
use steadfast::{ServerResource, ServerResourceTemplate};

use super::media::PNG;

pub(super) fn resources() -> [ServerResource; 3] {
    [
        ServerResource::new("test://static-text", "Static text")
            .description("A text that never changes.")
            .mime_type("text/plain")
            .text("This is the content of the static text resource."),
        ServerResource::new("test://static-binary", "Static picture")
            .description("A picture that never changes.")
            .mime_type("image/png")
            .blob(PNG),
        ServerResource::new("test://watched-resource", "Watched text")
            .description("A text that clients subscribe to.")
            .mime_type("text/plain")
            .text("This is the content of the watched resource."),
    ]
}

#[derive(Deserialize)]
struct ConformanceTemplateVariables {
    id: String,
}

pub(super) fn templates() -> [ServerResourceTemplate; 1] {
    [ServerResourceTemplate::new("test://template/{id}/data", "Data by id")
        .description("The data of an id.")
        .mime_type("application/json")
        .handler(|ConformanceTemplateVariables { id }: ConformanceTemplateVariables| async move {
            let data = format!("Data for ID: {id}");
            json!({ "id": id, "templateTest": true, "data": data }).to_string()
        })]
}
