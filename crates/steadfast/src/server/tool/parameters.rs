//! The parameters of a `#[tool]` function: a tuple, decoded member by member from the arguments.
//!
//! A tuple has no names, so the names of the parameters are passed separately. One decoder per tuple of types serves
//! every tool with parameters of those types; the macro generates no decoder. Arguments for which the function has no
//! parameter are ignored.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{DeserializeOwned, DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, Visitor};
use serde::forward_to_deserialize_any;

use super::arguments::RawArguments;
use super::error::ToolError;

/// A tuple of the parameters of a `#[tool]` function, which is decoded from the arguments of a call.
pub trait ParameterTuple: Sized + Send + 'static {
    /// Decodes the members of an object by name, the first name for the first element of the tuple.
    fn read<'de, M: MapAccess<'de>>(names: &[&'static str], map: M) -> Result<Self, M::Error>;
}

/// Decodes arguments into a tuple whose elements have these names.
pub(crate) fn decode<P: ParameterTuple>(arguments: &RawArguments, names: &[&'static str]) -> Result<P, ToolError> {
    arguments.decode_seed(ParameterTupleSeed(names, PhantomData::<fn() -> P>))
}

struct ParameterTupleSeed<'a, P>(&'a [&'static str], PhantomData<fn() -> P>);

impl<P> Clone for ParameterTupleSeed<'_, P> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<P> Copy for ParameterTupleSeed<'_, P> {}

impl<'de, P: ParameterTuple> DeserializeSeed<'de> for ParameterTupleSeed<'_, P> {
    type Value = P;
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<P, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de, P: ParameterTuple> Visitor<'de> for ParameterTupleSeed<'_, P> {
    type Value = P;
    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object with one member per argument")
    }
    fn visit_map<M: MapAccess<'de>>(self, map: M) -> Result<P, M::Error> {
        P::read(self.0, map)
    }
}

/// Decodes the name of an argument into its position in the list of parameter names.
struct ParameterIndexSeed<'a>(&'a [&'static str]);

impl<'de> DeserializeSeed<'de> for ParameterIndexSeed<'_> {
    type Value = Option<usize>;
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_identifier(self)
    }
}

impl Visitor<'_> for ParameterIndexSeed<'_> {
    type Value = Option<usize>;
    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("the name of an argument")
    }
    fn visit_str<E: Error>(self, key: &str) -> Result<Self::Value, E> {
        Ok(self.0.iter().position(|name| *name == key))
    }
}

fn fill<'de, T: DeserializeOwned, M: MapAccess<'de>>(
    slot: &mut Option<T>,
    map: &mut M,
    name: &'static str,
) -> Result<(), M::Error> {
    if slot.is_some() {
        return Err(Error::custom(format_args!("`{name}` is given twice")));
    }
    *slot = Some(map.next_value()?);
    Ok(())
}

/// Returns the value of an argument. An absent argument is `None` if `T` is an `Option`, and an error otherwise.
fn finish<T: DeserializeOwned, E: Error>(slot: Option<T>, name: &'static str) -> Result<T, E> {
    match slot {
        Some(value) => Ok(value),
        None => T::deserialize(AbsentValue(name, PhantomData)),
    }
}

/// Whether a tool parameter of this type may be absent from the arguments.
pub(crate) fn may_be_absent<T: DeserializeOwned>() -> bool {
    finish::<T, serde::de::value::Error>(None, "").is_ok()
}

struct AbsentValue<E>(&'static str, PhantomData<E>);

impl<'de, E: Error> Deserializer<'de> for AbsentValue<E> {
    type Error = E;
    fn deserialize_any<V: Visitor<'de>>(self, _visitor: V) -> Result<V::Value, E> {
        Err(Error::custom(format_args!("`{}` is missing", self.0)))
    }
    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, E> {
        visitor.visit_none()
    }
    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct
        newtype_struct seq tuple tuple_struct map struct enum identifier ignored_any
    }
}

impl ParameterTuple for () {
    fn read<'de, M: MapAccess<'de>>(_names: &[&'static str], mut map: M) -> Result<Self, M::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(())
    }
}

macro_rules! tuples {
    ($($type:ident $position:tt),+) => {
        impl<$($type: DeserializeOwned + Send + 'static),+> ParameterTuple for ($($type,)+) {
            fn read<'de, Map: MapAccess<'de>>(names: &[&'static str], mut map: Map) -> Result<Self, Map::Error> {
                let name = |position: usize| names.get(position).copied().unwrap_or_default();
                let mut slots = ($(None::<$type>,)+);
                while let Some(position) = map.next_key_seed(ParameterIndexSeed(names))? {
                    match position {
                        $(Some($position) => fill(&mut slots.$position, &mut map, name($position))?,)+
                        _ => {
                            map.next_value::<IgnoredAny>()?;
                        }
                    }
                }
                Ok(($(finish(slots.$position, name($position))?,)+))
            }
        }
    };
}

tuples!(A 0);
tuples!(A 0, B 1);
tuples!(A 0, B 1, C 2);
tuples!(A 0, B 1, C 2, D 3);
tuples!(A 0, B 1, C 2, D 3, E 4);
tuples!(A 0, B 1, C 2, D 3, E 4, F 5);
tuples!(A 0, B 1, C 2, D 3, E 4, F 5, G 6);
tuples!(A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7);
tuples!(A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8);
tuples!(A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8, J 9);
tuples!(A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8, J 9, K 10);
tuples!(A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8, J 9, K 10, L 11);
tuples!(A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8, J 9, K 10, L 11, M 12);
tuples!(A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8, J 9, K 10, L 11, M 12, N 13);
tuples!(A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8, J 9, K 10, L 11, M 12, N 13, O 14);
tuples!(A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8, J 9, K 10, L 11, M 12, N 13, O 14, P 15);

#[cfg(test)]
mod tests {
    use super::*;

    fn read<P: ParameterTuple>(text: &str, names: &[&'static str]) -> Result<P, String> {
        decode(&RawArguments::within(text.into(), 0..text.len()), names).map_err(|error| error.to_string())
    }

    #[test]
    fn members_are_found_by_name_in_any_order() {
        let read = read::<(String, u8)>(r#"{"days":3,"more":[1],"city":"Ulm"}"#, &["city", "days"]);
        assert_eq!(read, Ok(("Ulm".to_owned(), 3)));
    }

    #[test]
    fn an_absent_option_is_none_and_so_is_null() {
        assert_eq!(read::<(Option<u8>,)>("{}", &["days"]), Ok((None,)));
        assert_eq!(read::<(Option<u8>,)>(r#"{"days":null}"#, &["days"]), Ok((None,)));
    }

    #[test]
    fn what_is_missing_is_named() {
        assert_eq!(read::<(String,)>("{}", &["city"]), Err("Bad arguments: `city` is missing".to_owned()));
    }

    #[test]
    fn an_invalid_parameter_is_named() {
        assert_eq!(
            read::<(u8, Vec<u8>)>(r#"{"a":1,"b":[1,2,-3]}"#, &["a", "b"]),
            Err("Bad argument `b[2]`: it must be an integer from 0 to 255, and is -3".to_owned())
        );
    }

    #[test]
    fn a_member_given_twice_is_refused() {
        let read = read::<(u8,)>(r#"{"a":1,"a":2}"#, &["a"]);
        assert!(read.is_err_and(|error| error.contains("`a` is given twice")));
    }

    #[test]
    fn names_may_be_written_with_escapes() {
        assert_eq!(read::<(u8,)>(r#"{"\u0061":1}"#, &["a"]), Ok((1,)));
    }

    #[test]
    fn sixteen_parameters_are_read() {
        type Many = (u8, u8, u8, u8, u8, u8, u8, u8, u8, u8, u8, u8, u8, u8, u8, Option<u8>);
        let names = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m", "n", "o", "p"];
        let text: Vec<String> = names[..15].iter().map(|name| format!("\"{name}\":1")).collect();
        let many = read::<Many>(&format!("{{{}}}", text.join(",")), &names).unwrap();
        assert_eq!((many.14, many.15), (1, None));
    }
}
