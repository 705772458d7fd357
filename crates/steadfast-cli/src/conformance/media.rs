//! A minimal image and minimal audio.

/// A PNG of one pixel.
pub(super) const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\
    \0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\x06\0\0\0\x1f\x15\xc4\x89\
    \0\0\0\rIDATx\xdac\xfc\xcf\xc0\xf0\x1f\0\x05\x05\x02\0_\xc8\xf1\xd2\
    \0\0\0\0IEND\xaeB`\x82";

/// A WAV of one silent sample.
pub(super) const WAV: &[u8] = b"RIFF&\0\0\0WAVE\
    fmt \x10\0\0\0\x01\0\x01\0@\x1f\0\0\x80>\0\0\x02\0\x10\0\
    data\x02\0\0\0\0\0";
