//! The name and version of a client or server, and icons.

use serde::{Deserialize, Serialize};

use crate::setters::setters;

/// The client or server software at one end of a connection.
///
/// ```
/// use steadfast_model::Implementation;
/// let info = Implementation::new("weather", "1.2.0").with_title("Weather for people who are outside");
/// assert_eq!(serde_json::to_value(&info).unwrap()["title"], "Weather for people who are outside");
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Implementation {
    /// The name of the client or server software, for programs.
    pub name: String,
    /// The display name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The version of the software.
    pub version: String,
    /// What the software does, in a sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Icons.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub icons: Vec<Icon>,
    /// The address of the website of the client or server software.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub website_url: Option<String>,
}

impl Implementation {
    /// The client or server software with this name and version.
    pub fn new(name: impl Into<String>, version: impl Into<String>) -> Self {
        Self { name: name.into(), version: version.into(), ..Self::default() }
    }
}

setters!(Implementation {
    with_title(title: String),
    with_description(description: String),
    with_icons(icons: Vec<Icon>),
    with_website_url(website_url: String),
});

/// An icon for user interfaces.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Icon {
    /// The address of the image: an `https:` or `data:` URI.
    pub src: String,
    /// The media type of the icon, if `src` does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
    /// The sizes that the icon is made for: `"48x48"`, or `"any"`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sizes: Vec<String>,
    /// The background that the icon is made for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub theme: Option<IconTheme>,
}

impl Icon {
    /// An icon whose image is at this address.
    pub fn new(src: impl Into<String>) -> Self {
        Self { src: src.into(), ..Self::default() }
    }
}

setters!(Icon {
    with_mime_type(mime_type: String),
    with_sizes(sizes: Vec<String>),
    with_theme(theme: IconTheme),
});

/// The background that an [`Icon`] is made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum IconTheme {
    /// Light backgrounds.
    Light,
    /// Dark backgrounds.
    Dark,
}
