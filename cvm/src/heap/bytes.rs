//! Bytes of buffers, and what typed arrays and `DataView`s see of them.
//!
//! Owns: access to a buffer's bytes with notes of the changed parts, so that a checkpoint stores only these. Must not: use code.

use super::object::{ByteBuffer, ByteView, ObjectKind};
use super::{Cell, Heap};
use crate::value::{Id, Value};
use std::ops::Range;

impl Heap {
    /// The buffer, if the value is one.
    pub(crate) fn buffer(&self, id: Id) -> Option<&ByteBuffer> {
        match &self.obj(id).kind {
            ObjectKind::Buffer(buffer) => Some(buffer),
            _ => None,
        }
    }

    /// The buffer for changes of its length or its state; a checkpoint compares all its parts.
    pub(crate) fn buffer_mut(&mut self, id: Id) -> Option<&mut ByteBuffer> {
        match &mut self.obj_mut(id).kind {
            ObjectKind::Buffer(buffer) => Some(buffer),
            _ => None,
        }
    }

    /// These bytes of a buffer; none if they are not all there.
    #[inline]
    pub(crate) fn bytes_at(&self, id: Id, range: Range<usize>) -> Option<&[u8]> {
        self.buffer(id)?.bytes.get(range)
    }

    /// These bytes of a buffer for writing.
    #[inline]
    pub(crate) fn bytes_at_mut(&mut self, id: Id, range: Range<usize>) -> Option<&mut [u8]> {
        self.touch_text(id, range.clone());
        match self.cells.get_mut(id.index()) {
            Some(Cell::Obj(o)) => match &mut o.kind {
                ObjectKind::Buffer(buffer) => buffer.bytes.get_mut(range),
                _ => None,
            },
            _ => None,
        }
    }

    /// The view, if the value is a typed array or a `DataView`.
    #[inline]
    pub(crate) fn view(&self, value: Value) -> Option<&ByteView> {
        match value {
            Value::Obj(id) => match &self.obj(id).kind {
                ObjectKind::View(view) => Some(view),
                _ => None,
            },
            _ => None,
        }
    }

    /// The view, if the value is a typed array.
    #[inline]
    pub(crate) fn typed_array(&self, value: Value) -> Option<&ByteView> {
        self.view(value).filter(|view| view.element.is_some())
    }

    /// Number of elements of a view; none if its buffer is detached or too short.
    #[inline]
    pub(crate) fn count_of(&self, view: &ByteView) -> Option<usize> {
        let buffer = self.buffer(view.buffer)?;
        if buffer.detached { None } else { view.count(buffer.bytes.len()) }
    }

    /// Position in the buffer of these elements of a view, if they are all there.
    pub(crate) fn range_of(&self, view: &ByteView, from: usize, to: usize) -> Option<Range<usize>> {
        if to > self.count_of(view)? || from > to {
            return None;
        }
        let start = view.offset as usize;
        Some(start + from * view.size()..start + to * view.size())
    }
}
