//! The chainable setters of the public structs.
//!
//! The public structs are `#[non_exhaustive]`, so other crates build them with `new` and one `with_*` call per member. The
//! `setters` macro defines these `with_*` methods; a field may be an `Option` of the argument's type or the type itself.

macro_rules! setters {
    ($type:ident { $($setter:ident($field:ident: $argument:ty)),+ $(,)? }) => {
        impl $type {$(
            #[doc = concat!("Sets `", stringify!($field), "`.")]
            pub fn $setter(mut self, value: impl Into<$argument>) -> Self {
                let value: $argument = value.into();
                self.$field = value.into();
                self
            }
        )+}
    };
}

pub(crate) use setters;
