//! Images and audio that a tool returns, made from bytes.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use steadfast_model::Content;

/// An image that a tool returns.
///
/// ```
/// use steadfast::server::Image;
///
/// async fn chart() -> Image {
///     let bytes = b"\x89PNG...";
///     Image::png(bytes)
/// }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image(Base64Media);

/// Audio that a tool returns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Audio(Base64Media);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Base64Media {
    base64: String,
    mime_type: Cow<'static, str>,
}

impl Base64Media {
    fn new(bytes: &[u8], mime_type: Cow<'static, str>) -> Self {
        Self { base64: STANDARD.encode(bytes), mime_type }
    }
}

impl Image {
    /// An image of that media type, such as `image/webp`.
    pub fn new(bytes: impl AsRef<[u8]>, mime_type: impl Into<Cow<'static, str>>) -> Self {
        Self(Base64Media::new(bytes.as_ref(), mime_type.into()))
    }

    /// A PNG image.
    pub fn png(bytes: impl AsRef<[u8]>) -> Self {
        Self::new(bytes, "image/png")
    }

    /// A JPEG image.
    pub fn jpeg(bytes: impl AsRef<[u8]>) -> Self {
        Self::new(bytes, "image/jpeg")
    }
}

impl Audio {
    /// Audio of that media type, such as `audio/ogg`.
    pub fn new(bytes: impl AsRef<[u8]>, mime_type: impl Into<Cow<'static, str>>) -> Self {
        Self(Base64Media::new(bytes.as_ref(), mime_type.into()))
    }

    /// WAV audio.
    pub fn wav(bytes: impl AsRef<[u8]>) -> Self {
        Self::new(bytes, "audio/wav")
    }

    /// MP3 audio.
    pub fn mp3(bytes: impl AsRef<[u8]>) -> Self {
        Self::new(bytes, "audio/mpeg")
    }
}

impl From<Image> for Content {
    fn from(Image(media): Image) -> Self {
        Content::image(media.base64, media.mime_type)
    }
}

impl From<Audio> for Content {
    fn from(Audio(media): Audio) -> Self {
        Content::audio(media.base64, media.mime_type)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_become_base64() {
        assert_eq!(Content::from(Image::png([0, 1, 2])), Content::image("AAEC", "image/png"));
        assert_eq!(Content::from(Audio::wav([255])), Content::audio("/w==", "audio/wav"));
    }
}
