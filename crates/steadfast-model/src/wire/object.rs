//! Encodes a JSON object for one revision: each member is written at once, if the revision has it.

use serde::Serialize;
use serde::ser::{SerializeMap, SerializeSeq, Serializer};

use super::{Encode, MetaEntry, PerMessageMembers};
use crate::json::{ExtraMembers, JsonObject};
use crate::message::meta::Meta;
use crate::revision::Revision;

/// An object that is being written for one revision.
pub struct ObjectEncoder<'a, M> {
    map: M,
    revision: Revision,
    /// The members that are added to each message; they are written into the outermost object only.
    common_members: Option<&'a PerMessageMembers>,
}

impl<'a, M: SerializeMap> ObjectEncoder<'a, M> {
    pub(super) fn outermost(map: M, revision: Revision, common_members: &'a PerMessageMembers) -> Self {
        Self { map, revision, common_members: Some(common_members) }
    }

    pub(super) fn end(self) -> Result<M::Ok, M::Error> {
        self.map.end()
    }

    /// The protocol revision that the object is encoded for.
    pub fn revision(&self) -> Revision {
        self.revision
    }

    /// True if the object is encoded for the revision `first` or a later one.
    pub fn is_since(&self, first: Revision) -> bool {
        self.revision >= first
    }

    /// Writes a member.
    pub fn put<T: Serialize + ?Sized>(&mut self, key: &str, value: &T) -> Result<(), M::Error> {
        self.map.serialize_entry(key, value)
    }

    /// Writes a member if there is a value.
    pub fn some<T: Serialize>(&mut self, key: &str, value: Option<&T>) -> Result<(), M::Error> {
        value.map_or(Ok(()), |value| self.put(key, value))
    }

    /// Writes a member if there is a value and the revision has the member.
    pub fn since<T: Serialize>(&mut self, first: Revision, key: &str, value: Option<&T>) -> Result<(), M::Error> {
        if self.is_since(first) { self.some(key, value) } else { Ok(()) }
    }

    /// Writes a list if it has elements and the revision has the member.
    pub fn list_since<T: Serialize>(&mut self, first: Revision, key: &str, values: &[T]) -> Result<(), M::Error> {
        if values.is_empty() || !self.is_since(first) { Ok(()) } else { self.put(key, values) }
    }

    /// Writes a member whose value is an object that depends on the revision.
    pub fn inner<T: Encode>(&mut self, key: &str, value: &T) -> Result<(), M::Error> {
        let revision = self.revision;
        self.put(key, &NestedObjectEncoder { value, revision })
    }

    /// Writes a member whose value is an object that depends on the revision, if there is a value.
    pub fn inner_some<T: Encode>(&mut self, key: &str, value: Option<&T>) -> Result<(), M::Error> {
        value.map_or(Ok(()), |value| self.inner(key, value))
    }

    /// Writes a member whose value is a list of objects that depend on the revision.
    pub fn inner_list<T: Encode>(&mut self, key: &str, values: &[T]) -> Result<(), M::Error> {
        let revision = self.revision;
        self.put(key, &NestedObjectListEncoder { values, revision })
    }

    /// Writes `_meta`: on the outermost object always, with the entries that are added to each message; on inner objects since
    /// 2025-06-18.
    pub fn meta(&mut self, meta: Option<&Meta>) -> Result<(), M::Error> {
        self.raw_meta(meta.map(|meta| &**meta))
    }

    pub(super) fn raw_meta(&mut self, own: Option<&JsonObject>) -> Result<(), M::Error> {
        let revision = self.revision;
        let added = self.common_members.map(|common_members| common_members.entries(revision));
        let has_added = added.clone().is_some_and(|mut added| added.next().is_some());
        let may_have_own = self.common_members.is_some() || self.is_since(Revision::V2025_06_18);
        if has_added || (own.is_some() && may_have_own) {
            self.put("_meta", &MergedMeta { own, added: added.into_iter().flatten() })?;
        }
        Ok(())
    }

    /// Writes the unknown members that a peer added.
    pub fn extra(&mut self, extra: &ExtraMembers) -> Result<(), M::Error> {
        for (key, value) in extra.as_object().into_iter().flatten() {
            self.put(key, value)?;
        }
        Ok(())
    }
}

/// Serializes a value as a JSON object for one revision, without the members that are added to each message.
pub(super) struct NestedObjectEncoder<'a, T> {
    pub(super) value: &'a T,
    pub(super) revision: Revision,
}

impl<T: Encode> Serialize for NestedObjectEncoder<'_, T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let map = serializer.serialize_map(None)?;
        let mut object = ObjectEncoder { map, revision: self.revision, common_members: None };
        self.value.encode(&mut object)?;
        object.end()
    }
}

struct NestedObjectListEncoder<'a, T> {
    values: &'a [T],
    revision: Revision,
}

impl<T: Encode> Serialize for NestedObjectListEncoder<'_, T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut sequence = serializer.serialize_seq(Some(self.values.len()))?;
        for value in self.values {
            sequence.serialize_element(&NestedObjectEncoder { value, revision: self.revision })?;
        }
        sequence.end()
    }
}

/// The `_meta` of a message: the entries that are added to each message, then the message's own entries under other keys.
struct MergedMeta<'a, I> {
    own: Option<&'a JsonObject>,
    added: I,
}

impl<'a, I: Iterator<Item = &'a MetaEntry> + Clone> Serialize for MergedMeta<'a, I> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for entry in self.added.clone() {
            map.serialize_entry(entry.key, &entry.value)?;
        }
        for (key, value) in self.own.into_iter().flatten() {
            if !self.added.clone().any(|added| added.key == key) {
                map.serialize_entry(key, value)?;
            }
        }
        map.end()
    }
}
