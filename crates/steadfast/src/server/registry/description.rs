//! What is said in the same words of a tool, a prompt, a resource and a template, written once.
//!
//! Each of them has a builder of its own, so that a reader of its documentation finds everything there; what they share is
//! put into them from here.

/// The setters that all of them have: into an `impl` of a builder with the fields `definition` and `cooperative`.
macro_rules! description_setters {
    (description: $description:literal) => {
        /// The name that people see.
        pub fn title(mut self, title: impl Into<String>) -> Self {
            self.definition.title = Some(title.into());
            self
        }

        #[doc = $description]
        pub fn description(mut self, description: impl Into<String>) -> Self {
            self.definition.description = Some(description.into());
            self
        }

        /// Adds a picture.
        pub fn icon(mut self, icon: steadfast_model::Icon) -> Self {
            self.definition.icons.push(icon);
            self
        }

        /// The `_meta` of the description.
        pub fn meta(mut self, meta: impl Into<steadfast_model::Meta>) -> Self {
            self.definition.meta = Some(meta.into());
            self
        }

        /// A cancellation does not stop the handler at once: it goes on, sees `ctx.cancelled()`, and has the grace period to
        /// come to an end. Nothing that it returns is sent any more.
        pub fn cooperative(mut self) -> Self {
            self.cooperative = true;
            self
        }
    };
}

/// The setter of prompts, resources and templates for what they need: into an `impl` of a builder with the field `needs`.
macro_rules! needs_setter {
    () => {
        /// Something that a client has to be able to do: others are refused before the handler runs. May be said more than
        /// once.
        pub fn needs(mut self, need: crate::server::input::need::Need) -> Self {
            self.needs.push(need);
            self
        }
    };
}

/// The setters of what can be read: into an `impl` of a builder with the fields `definition` and `cache`.
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

        /// How long clients may keep what they have read, and who may be given the copy (since 2026-07-28). Not at all by
        /// default. A handler that returns a [`ReadResourceResult`](steadfast_model::ReadResourceResult) may say
        /// otherwise.
        pub fn cache(mut self, cache: steadfast_model::Cache) -> Self {
            self.cache = Some(cache);
            self
        }
    };
}

pub(crate) use {contents_setters, description_setters, needs_setter};
