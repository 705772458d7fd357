//! The setters that the builders of tools, prompts, resources and templates share, written once as macros.
//!
//! Tools, prompts, resources and templates each have their own builder, so that its documentation lists all setters;
//! the shared setters are expanded into each builder.

/// The setters of the builders of tools, prompts, resources and templates, for an `impl` of a builder with the fields
/// `definition` and `cooperative`.
macro_rules! description_setters {
    (description: $description:literal) => {
        /// The title: the name that is displayed to people.
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

        /// The `_meta` of the definition that clients list.
        pub fn meta(mut self, meta: impl Into<steadfast_model::Meta>) -> Self {
            self.definition.meta = Some(meta.into());
            self
        }

        /// Makes the handler cooperative: a cancellation does not drop the handler at once. The handler goes on, sees
        /// `ctx.cancelled()`, and has to end within the grace period. The result of a cancelled handler is not sent.
        pub fn cooperative(mut self) -> Self {
            self.cooperative = true;
            self
        }
    };
}

/// The setter for required client capabilities, for an `impl` of a builder with the field `needs`.
macro_rules! needs_setter {
    () => {
        /// Adds a capability that a client must have declared: requests of other clients are refused before the handler
        /// runs. Call `needs` once for each required capability.
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
        /// 2026-07-28). By default, the contents of a resource are not cached. A handler that returns a
        /// [`ReadResourceResult`](steadfast_model::ReadResourceResult) can override these cache hints.
        pub fn cache(mut self, cache: steadfast_model::CacheHints) -> Self {
            self.cache = Some(cache);
            self
        }
    };
}

pub(crate) use {contents_setters, description_setters, needs_setter};
