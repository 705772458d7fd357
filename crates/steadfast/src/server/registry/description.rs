//! The setters that the builders of tools, prompts, resources and templates share, written once as macros.
//!
//! Each of these has its own builder, so that its documentation lists everything; the shared setters are expanded into
//! each.

/// The setters that all of them have, for an `impl` of a builder with the fields `definition` and `cooperative`.
macro_rules! description_setters {
    (description: $description:literal) => {
        /// The name to display to people.
        pub fn title(mut self, title: impl Into<String>) -> Self {
            self.definition.title = Some(title.into());
            self
        }

        #[doc = $description]
        pub fn description(mut self, description: impl Into<String>) -> Self {
            self.definition.description = Some(description.into());
            self
        }

        /// Adds an icon.
        pub fn icon(mut self, icon: steadfast_model::Icon) -> Self {
            self.definition.icons.push(icon);
            self
        }

        /// The `_meta` of the definition.
        pub fn meta(mut self, meta: impl Into<steadfast_model::Meta>) -> Self {
            self.definition.meta = Some(meta.into());
            self
        }

        /// A cancellation does not drop the handler: it goes on, sees `ctx.cancelled()`, and has to end within the
        /// grace period. Its result is not sent.
        pub fn cooperative(mut self) -> Self {
            self.cooperative = true;
            self
        }
    };
}

/// The setter for required client capabilities, for an `impl` of a builder with the field `needs`.
macro_rules! needs_setter {
    () => {
        /// A capability that a client must have declared: other clients are refused before the handler runs. May be
        /// called more than once.
        pub fn needs(mut self, need: crate::server::input::need::RequiredClientCapability) -> Self {
            self.needs.push(need);
            self
        }
    };
}

/// The setters of resources and templates, for an `impl` of a builder with the fields `definition` and `cache`.
macro_rules! contents_setters {
    (mime_type: $mime_type:literal, annotations: $annotations:literal) => {
        #[doc = $mime_type]
        pub fn mime_type(mut self, mime_type: impl Into<String>) -> Self {
            self.definition.mime_type = Some(mime_type.into());
            self
        }

        #[doc = $annotations]
        pub fn annotations(mut self, annotations: steadfast_model::Annotations) -> Self {
            self.definition.annotations = Some(annotations);
            self
        }

        /// How long clients may cache the contents, and whether the cache may be shared between users (since
        /// 2026-07-28). No caching by default. A handler that returns a
        /// [`ReadResourceResult`](steadfast_model::ReadResourceResult) can override it.
        pub fn cache(mut self, cache: steadfast_model::CacheHints) -> Self {
            self.cache = Some(cache);
            self
        }
    };
}

pub(crate) use {contents_setters, description_setters, needs_setter};
