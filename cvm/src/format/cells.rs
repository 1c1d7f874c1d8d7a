//! Heap cells as bytes. Long contents (elements, entries, properties, text) are stored in chunks outside of the cell, so that
//! a page stays small and only the new end of a growing container is written.

use super::FormatError;
use super::codec::{ByteReader, ByteWriter};
use crate::heap::object::{
    Array, ByteBuffer, ByteView, Code, Coroutine, EntryTable, Func, Object, ObjectKind, Promise, PromiseItem,
    Prop, Props,
};
use crate::heap::text::{Buf, Text};
use crate::heap::{Cell, PART_ITEMS, PART_TEXT, StrCell, SymCell};
use crate::outcome::ItemKind;
use crate::pure::elements::ElementType;
use crate::value::{Key, Value};
use num_bigint::BigInt;

type Res<T> = Result<T, FormatError>;

/// Items of one chunk.
const CHUNK_ITEMS: usize = PART_ITEMS;
/// Bytes of text of one chunk.
const CHUNK_TEXT: usize = PART_TEXT;
/// A container with more items than this keeps them outside its cell. Smaller than a chunk, because a page of cells is
/// written whole when one of them changed.
const INLINE_ITEMS: usize = 32;
/// The same for bytes of buffers, and of text as it was stored before its chunks were named by their content.
const INLINE_BYTES: usize = 256;
/// Longer text is stored in chunks that are named by their content. Their names take some bytes, too.
const INLINE_TEXT: usize = 128;
/// The element type's number in a stored `DataView`.
const DATA_VIEW: u8 = 255;
/// A base object with more new properties than this is written whole.
const MOST_NEW_PROPS: usize = 128;

/// Receives the chunks of a cell that is being written.
pub(super) trait ChunkSink {
    /// The container that is being written has `count` chunks; returns the numbers of those to write, ascending.
    fn to_write(&mut self, count: u32) -> Vec<u32>;
    /// Encoded chunk `n` of the cell that is being written.
    fn put(&mut self, n: u32, bytes: Vec<u8>);
    /// Numbers of the chunks that have the text of the cell that is being written; none if it is stored as a buffer's bytes are.
    fn text(&mut self, text: Text<'_>) -> Option<Vec<u64>>;
}

/// Chunks of the cell that is being read.
pub(super) trait ChunkSource {
    /// Chunk `n`.
    fn get(&self, n: u32) -> Res<&[u8]>;
    /// The chunk of text with this number.
    fn text(&self, number: u64) -> Res<&[u8]>;
}

/// Writes a list inline or, when long, as chunks.
fn list(w: &mut ByteWriter, len: usize, chunks: &mut dyn ChunkSink, each: impl Fn(&mut ByteWriter, usize)) {
    w.count(len);
    if len <= INLINE_ITEMS {
        for i in 0..len {
            each(w, i);
        }
        return;
    }
    for n in chunks.to_write(len.div_ceil(CHUNK_ITEMS) as u32) {
        let from = n as usize * CHUNK_ITEMS;
        let mut inner = ByteWriter::default();
        for i in from..len.min(from + CHUNK_ITEMS) {
            each(&mut inner, i);
        }
        chunks.put(n, inner.out);
    }
}

/// Whether this cell has two lists of which only one at a time can be stored in chunks.
pub(super) fn has_two_lists(cell: &Cell) -> bool {
    matches!(cell, Cell::Obj(o) if o.props.raw().len() > INLINE_ITEMS && !matches!(o.kind, ObjectKind::Plain))
}

fn read_list<T>(
    r: &mut ByteReader<'_>,
    source: &dyn ChunkSource,
    each: impl Fn(&mut ByteReader<'_>) -> Res<T>,
) -> Res<Vec<T>> {
    let n = r.num()? as usize;
    if n <= INLINE_ITEMS {
        return (0..n).map(|_| each(r)).collect();
    }
    let mut items = Vec::new();
    let mut number = 0;
    while items.len() < n {
        let mut inner = ByteReader::new(source.get(number)?);
        for _ in 0..CHUNK_ITEMS.min(n - items.len()) {
            items.push(each(&mut inner)?);
        }
        inner.end()?;
        number += 1;
    }
    Ok(items)
}

/// Writes the tag of a text, and the text: the first tag is for text that is stored as bytes.
fn write_text(w: &mut ByteWriter, tags: (u8, u8), text: Text<'_>, chunks: &mut dyn ChunkSink) {
    let length = match text {
        Text::Narrow(t) => t.len(),
        Text::Wide(t) => t.len() * 2,
    };
    if length > INLINE_TEXT
        && let Some(numbers) = chunks.text(text)
    {
        w.u8(tags.1);
        w.count(length);
        list(w, numbers.len(), chunks, |w, i| w.num(numbers[i]));
        return;
    }
    w.u8(tags.0);
    match text {
        Text::Narrow(t) => bytes(w, t, chunks),
        Text::Wide(t) => wide_text(w, t, chunks),
    }
}

/// Reads a text of chunks that are named by their content.
fn read_text(r: &mut ByteReader<'_>, source: &dyn ChunkSource) -> Res<Vec<u8>> {
    let length = usize::try_from(r.num()?).map_err(|_| FormatError::Invalid("length"))?;
    let mut text = Vec::new();
    for number in read_list(r, source, read_number)? {
        text.extend_from_slice(source.text(number)?);
    }
    if text.len() == length { Ok(text) } else { Err(FormatError::Invalid("text")) }
}

fn bytes(w: &mut ByteWriter, bytes: &[u8], chunks: &mut dyn ChunkSink) {
    w.count(bytes.len());
    if bytes.len() <= INLINE_BYTES {
        w.out.extend_from_slice(bytes);
        return;
    }
    for n in chunks.to_write(bytes.len().div_ceil(CHUNK_TEXT) as u32) {
        let from = n as usize * CHUNK_TEXT;
        chunks.put(n, bytes.get(from..bytes.len().min(from + CHUNK_TEXT)).unwrap_or(&[]).to_vec());
    }
}

/// The same for units of two bytes.
fn wide_text(w: &mut ByteWriter, units: &[u16], chunks: &mut dyn ChunkSink) {
    w.count(units.len() * 2);
    if units.len() * 2 <= INLINE_BYTES {
        w.out.extend(units.iter().flat_map(|u| u.to_le_bytes()));
        return;
    }
    for n in chunks.to_write((units.len() * 2).div_ceil(CHUNK_TEXT) as u32) {
        let from = n as usize * (CHUNK_TEXT / 2);
        let part = units.get(from..units.len().min(from + CHUNK_TEXT / 2)).unwrap_or(&[]);
        chunks.put(n, part.iter().flat_map(|u| u.to_le_bytes()).collect());
    }
}

fn read_bytes(r: &mut ByteReader<'_>, source: &dyn ChunkSource) -> Res<Vec<u8>> {
    let n = usize::try_from(r.num()?).map_err(|_| FormatError::Invalid("length"))?;
    if n <= INLINE_BYTES {
        return Ok(r.take(n)?.to_vec());
    }
    let mut bytes = Vec::new();
    let mut number = 0;
    while bytes.len() < n {
        let part = source.get(number)?;
        if part.len() != CHUNK_TEXT.min(n - bytes.len()) {
            return Err(FormatError::Invalid("chunk"));
        }
        bytes.extend_from_slice(part);
        number += 1;
    }
    Ok(bytes)
}

fn wide_units(bytes: &[u8]) -> Res<Vec<u16>> {
    if !bytes.len().is_multiple_of(2) {
        return Err(FormatError::Invalid("text"));
    }
    Ok(bytes.chunks_exact(2).map(|c| u16::from_le_bytes([c[0], c[1]])).collect())
}

fn write_prop(w: &mut ByteWriter, p: &Prop) {
    w.num(u64::from(p.key.0));
    w.u8(p.flags);
    w.value(p.value);
}

fn read_value(r: &mut ByteReader<'_>) -> Res<Value> {
    r.value()
}

fn read_number(r: &mut ByteReader<'_>) -> Res<u64> {
    r.num()
}

fn read_prop(r: &mut ByteReader<'_>) -> Res<Prop> {
    let key = Key(r.u32()?);
    let flags = r.u8()?;
    if flags > 15 {
        return Err(FormatError::Invalid("attributes"));
    }
    Ok(Prop { key, flags, value: r.value()? })
}

/// Writes a cell; `base` is the base's cell with this id, if there is one.
pub(super) fn write(w: &mut ByteWriter, cell: &Cell, base: Option<&Cell>, chunks: &mut dyn ChunkSink) {
    match cell {
        // A cell that is equal to the base's is not written.
        Cell::Free | Cell::Below => w.u8(0),
        Cell::Str(StrCell::Narrow(t, interned)) => {
            write_text(w, if *interned { (2, 15) } else { (1, 14) }, Text::Narrow(t), chunks);
        }
        Cell::Str(StrCell::Wide(t, interned)) => {
            write_text(w, if *interned { (4, 17) } else { (3, 16) }, Text::Wide(t), chunks);
        }
        Cell::Str(StrCell::View(buf, len)) => {
            w.u8(5);
            w.id(*buf);
            w.num(u64::from(*len));
        }
        Cell::Sym(s) => {
            w.u8(6);
            w.value(s.description);
            w.u8(u8::from(s.private) | u8::from(s.registered) << 1);
        }
        Cell::Big(n) => {
            w.u8(7);
            w.bytes(&n.to_signed_bytes_le());
        }
        Cell::Scope(parent, slots) => {
            w.u8(8);
            w.value(*parent);
            w.values(slots);
        }
        Cell::Pair(get, set) => {
            w.u8(9);
            w.value(*get);
            w.value(*set);
        }
        Cell::Buf(b) => match &**b {
            Buf::Narrow(t) => write_text(w, (10, 18), Text::Narrow(t), chunks),
            Buf::Wide(t) => write_text(w, (11, 19), Text::Wide(t), chunks),
        },
        Cell::Obj(o) => write_object(w, o, base, chunks),
    }
}

fn write_object(w: &mut ByteWriter, o: &Object, base: Option<&Cell>, chunks: &mut dyn ChunkSink) {
    let props = o.props.raw();
    // A base object that only got changed values and more properties is stored as the difference.
    if let (Some(Cell::Obj(b)), ObjectKind::Plain) = (base, &o.kind)
        && matches!(b.kind, ObjectKind::Plain)
        && b.proto == o.proto
        && b.extensible == o.extensible
        && b.props.raw().len() <= props.len()
        && b.props.raw().iter().zip(props).all(|(x, y)| x.key == y.key && x.flags == y.flags)
        && props.len() - b.props.raw().len() <= MOST_NEW_PROPS
    {
        let old = b.props.raw();
        w.u8(13);
        let differs: Vec<usize> = (0..old.len()).filter(|&i| !same(old[i].value, props[i].value)).collect();
        w.count(differs.len());
        for i in differs {
            w.count(i);
            w.value(props[i].value);
        }
        w.count(props.len() - old.len());
        props[old.len()..].iter().for_each(|p| write_prop(w, p));
        return;
    }
    w.u8(12);
    w.id(o.proto);
    let chunked_kind = write_kind(w, &o.kind, o.extensible, chunks);
    let props_out = props.len() > INLINE_ITEMS && !chunked_kind;
    w.u8(u8::from(props_out));
    if props_out {
        list(w, props.len(), chunks, |w, i| write_prop(w, &props[i]));
    } else {
        w.count(props.len());
        for p in props {
            write_prop(w, p);
        }
    }
}

fn same(a: Value, b: Value) -> bool {
    match (a, b) {
        (Value::Num(x), Value::Num(y)) => x.to_bits() == y.to_bits(),
        _ => a == b,
    }
}

/// Writes the kind; true if the kind used the cell's chunks.
fn write_kind(w: &mut ByteWriter, kind: &ObjectKind, extensible: bool, chunks: &mut dyn ChunkSink) -> bool {
    let flag = if extensible { 0 } else { 0x80 };
    match kind {
        ObjectKind::Plain => w.u8(flag),
        ObjectKind::Array(a) | ObjectKind::Arguments(a) => {
            w.u8(flag | if matches!(kind, ObjectKind::Array(_)) { 1 } else { 2 });
            w.num(u64::from(a.len));
            w.u8(u8::from(a.len_writable));
            list(w, a.dense.len(), chunks, |w, i| w.value(a.dense[i]));
            return a.dense.len() > INLINE_ITEMS;
        }
        ObjectKind::Function(f) => {
            w.u8(flag | 0x03);
            write_function(w, f);
        }
        ObjectKind::Bound(b) => {
            w.u8(flag | 0x04);
            w.value(b.0);
            w.value(b.1);
            w.values(&b.2);
        }
        ObjectKind::Error => w.u8(flag | 5),
        ObjectKind::Primitive(v) => {
            w.u8(flag | 0x06);
            w.value(*v);
        }
        ObjectKind::Date(t) => {
            w.u8(flag | 0x07);
            w.float(*t);
        }
        ObjectKind::RegExp(source, flags) => {
            w.u8(flag | 0x08);
            w.value(*source);
            w.value(*flags);
        }
        ObjectKind::Map(t) | ObjectKind::Set(t) | ObjectKind::Weak(t) => {
            w.u8(flag
                | if let ObjectKind::Map(_) = kind {
                    9
                } else if let ObjectKind::Set(_) = kind {
                    10
                } else {
                    11
                });
            w.num(t.next);
            list(w, t.entries.len().min(t.order.len()), chunks, |w, i| {
                w.value(t.entries[i].0);
                w.value(t.entries[i].1);
                w.num(t.order[i]);
            });
            return t.entries.len() > INLINE_ITEMS;
        }
        ObjectKind::Coroutine(c) => {
            w.u8(flag | 0x0c);
            w.u8(c.state);
            w.num(u64::from(c.template));
            w.num(u64::from(c.pc));
            w.values(&c.slots);
            w.value(c.env);
            w.value(c.new_target);
            w.value(c.link);
        }
        ObjectKind::Promise(p) => {
            w.u8(flag | 0x0d);
            w.u8(p.state | u8::from(p.handled) << 2 | u8::from(p.item.is_some()) << 3);
            if let Some(item) = p.item {
                w.u8(item_tag(item.kind));
                w.num(item.number);
            }
            w.value(p.result);
            w.count(p.reactions.len());
            for (a, b, c) in &p.reactions {
                w.value(*a);
                w.value(*b);
                w.value(*c);
            }
        }
        ObjectKind::Record(tag, slots) => {
            w.u8(flag | 0x0e);
            w.num(u64::from(*tag));
            w.values(slots);
        }
        ObjectKind::Proxy(p) => {
            w.u8(flag | 0x0f);
            w.value(p.0);
            w.value(p.1);
            w.u8(u8::from(p.2) | u8::from(p.3) << 1);
        }
        ObjectKind::Buffer(b) => {
            w.u8(flag | 0x10);
            w.u8(u8::from(b.detached));
            w.num(b.max.map_or(0, |max| max + 1));
            bytes(w, &b.bytes, chunks);
            return b.bytes.len() > INLINE_BYTES;
        }
        ObjectKind::View(view) => {
            w.u8(flag | 0x11);
            w.u8(view.element.map_or(DATA_VIEW, |element| element as u8));
            w.id(view.buffer);
            w.num(view.offset);
            w.num(view.length.map_or(0, |length| length + 1));
        }
    }
    false
}

/// Tags of kinds are stored: they keep their meaning, and new ones are appended.
fn item_tag(kind: ItemKind) -> u8 {
    match kind {
        ItemKind::Question => 0,
        ItemKind::Timer => 1,
        ItemKind::Event => 2,
    }
}

fn read_item(r: &mut ByteReader<'_>) -> Res<PromiseItem> {
    let kind = match r.u8()? {
        0 => ItemKind::Question,
        1 => ItemKind::Timer,
        2 => ItemKind::Event,
        _ => return Err(FormatError::Invalid("item")),
    };
    Ok(PromiseItem { number: r.num()?, kind })
}

fn write_function(w: &mut ByteWriter, f: &Func) {
    let extras = [f.home, f.this, f.extra, f.fields];
    let any = extras.iter().any(|v| *v != Value::Undefined);
    let (native, number) = match f.code {
        Code::Template(n) => (0, n),
        Code::Native(n) => (1, n),
    };
    w.u8(native | u8::from(f.lazy) << 1 | u8::from(any) << 2);
    w.num(u64::from(number));
    w.value(f.env);
    if any {
        for v in &extras {
            w.value(*v);
        }
    }
}

/// Reads a cell.
pub(super) fn read(r: &mut ByteReader<'_>, base: Option<&Cell>, source: &dyn ChunkSource) -> Res<Cell> {
    let tag = r.u8()?;
    Ok(match tag {
        0 => Cell::Free,
        1..=4 | 10 | 11 => text_cell(tag, read_bytes(r, source)?)?,
        14..=19 => text_cell([1, 2, 3, 4, 10, 11][usize::from(tag - 14)], read_text(r, source)?)?,
        5 => Cell::Str(StrCell::View(r.id()?, r.u32()?)),
        6 => {
            let description = r.value()?;
            let bits = r.u8()?;
            Cell::Sym(SymCell { description, private: bits & 1 != 0, registered: bits & 2 != 0 })
        }
        7 => Cell::Big(Box::new(BigInt::from_signed_bytes_le(r.bytes()?))),
        8 => Cell::Scope(r.value()?, r.values()?.into()),
        9 => Cell::Pair(r.value()?, r.value()?),
        12 => {
            let proto = r.id()?;
            let (kind, extensible) = read_kind(r, source)?;
            let props = if r.bool()? {
                read_list(r, source, read_prop)?
            } else {
                let n = r.count(3)?;
                (0..n).map(|_| read_prop(r)).collect::<Res<_>>()?
            };
            Cell::Obj(Box::new(Object { proto, extensible, props: Props::from_raw(props), kind }))
        }
        13 => read_difference(r, base)?,
        _ => return Err(FormatError::Invalid("cell")),
    })
}

/// The cell of a text by the tag of text that is stored as bytes.
fn text_cell(tag: u8, bytes: Vec<u8>) -> Res<Cell> {
    Ok(match tag {
        1 | 2 => Cell::Str(StrCell::Narrow(bytes.into(), tag == 2)),
        3 | 4 => {
            let units = wide_units(&bytes)?;
            if units.iter().all(|&u| u < 256) {
                return Err(FormatError::Invalid("text"));
            }
            Cell::Str(StrCell::Wide(units.into(), tag == 4))
        }
        10 => Cell::Buf(Box::new(Buf::Narrow(bytes))),
        _ => Cell::Buf(Box::new(Buf::Wide(wide_units(&bytes)?))),
    })
}

fn read_difference(r: &mut ByteReader<'_>, base: Option<&Cell>) -> Res<Cell> {
    let Some(Cell::Obj(b)) = base else { return Err(FormatError::Invalid("difference")) };
    let mut props = b.props.raw().to_vec();
    for _ in 0..r.count(2)? {
        let i = r.num()? as usize;
        let value = r.value()?;
        props.get_mut(i).ok_or(FormatError::Invalid("difference"))?.value = value;
    }
    for _ in 0..r.count(3)? {
        props.push(read_prop(r)?);
    }
    let mut object = (**b).clone();
    object.props = Props::from_raw(props);
    Ok(Cell::Obj(Box::new(object)))
}

fn read_kind(r: &mut ByteReader<'_>, source: &dyn ChunkSource) -> Res<(ObjectKind, bool)> {
    let tag = r.u8()?;
    let kind = match tag & 0x7f {
        0 => ObjectKind::Plain,
        tag @ (1 | 2) => {
            let (len, len_writable) = (r.u32()?, r.bool()?);
            let dense = read_list(r, source, read_value)?;
            if dense.len() as u64 > u64::from(len) {
                return Err(FormatError::Invalid("array length"));
            }
            let array = Array { dense, len, len_writable };
            if tag == 1 { ObjectKind::Array(array) } else { ObjectKind::Arguments(array) }
        }
        3 => ObjectKind::Function(Box::new(read_function(r)?)),
        4 => ObjectKind::Bound(Box::new((r.value()?, r.value()?, r.values()?))),
        5 => ObjectKind::Error,
        6 => ObjectKind::Primitive(r.value()?),
        7 => ObjectKind::Date(r.float()?),
        8 => ObjectKind::RegExp(r.value()?, r.value()?),
        tag @ (9..=11) => {
            let next = r.num()?;
            let numbered = read_list(r, source, |r| Ok((r.value()?, r.value()?, r.num()?)))?;
            let order: Vec<u64> = numbered.iter().map(|e| e.2).collect();
            if order.windows(2).any(|w| w[0] >= w[1]) || order.last().is_some_and(|&n| n >= next) {
                return Err(FormatError::Invalid("entry numbers"));
            }
            let entries: Vec<(Value, Value)> = numbered.iter().map(|e| (e.0, e.1)).collect();
            let live = entries.iter().filter(|e| e.0 != Value::Hole).count() as u32;
            let table = Box::new(EntryTable { entries, live, order, next, ..EntryTable::default() });
            match tag {
                9 => ObjectKind::Map(table),
                10 => ObjectKind::Set(table),
                _ => ObjectKind::Weak(table),
            }
        }
        12 => ObjectKind::Coroutine(Box::new(Coroutine {
            state: r.u8()?,
            template: r.u32()?,
            pc: r.u32()?,
            slots: r.values()?,
            env: r.value()?,
            new_target: r.value()?,
            link: r.value()?,
        })),
        13 => {
            let bits = r.u8()?;
            if bits > 15 {
                return Err(FormatError::Invalid("promise"));
            }
            let item = if bits & 8 == 0 { None } else { Some(read_item(r)?) };
            let (state, handled, result) = (bits & 3, bits & 4 != 0, r.value()?);
            let n = r.count(3)?;
            let reactions = (0..n).map(|_| Ok((r.value()?, r.value()?, r.value()?))).collect::<Res<_>>()?;
            ObjectKind::Promise(Box::new(Promise { state, handled, result, reactions, item }))
        }
        14 => ObjectKind::Record(r.u32()?, r.values()?),
        15 => {
            let (target, handler, bits) = (r.value()?, r.value()?, r.u8()?);
            ObjectKind::Proxy(Box::new((target, handler, bits & 1 != 0, bits & 2 != 0)))
        }
        16 => {
            let detached = r.bool()?;
            let max = r.num()?.checked_sub(1);
            let bytes = read_bytes(r, source)?;
            if (detached && !bytes.is_empty()) || max.is_some_and(|max| (bytes.len() as u64) > max) {
                return Err(FormatError::Invalid("buffer"));
            }
            ObjectKind::Buffer(Box::new(ByteBuffer { bytes, max, detached }))
        }
        17 => {
            let element = match r.u8()? {
                DATA_VIEW => None,
                number => Some(
                    ElementType::of_number(usize::from(number))
                        .ok_or(FormatError::Invalid("element type"))?,
                ),
            };
            let (buffer, offset, length) = (r.id()?, r.num()?, r.num()?.checked_sub(1));
            ObjectKind::View(Box::new(ByteView { element, buffer, offset, length }))
        }
        _ => return Err(FormatError::Invalid("kind")),
    };
    Ok((kind, tag & 0x80 == 0))
}

fn read_function(r: &mut ByteReader<'_>) -> Res<Func> {
    let bits = r.u8()?;
    let number = r.u32()?;
    let env = r.value()?;
    let mut extras = [Value::Undefined; 4];
    if bits & 4 != 0 {
        for slot in &mut extras {
            *slot = r.value()?;
        }
    }
    let [home, this, extra, fields] = extras;
    let code = if bits & 1 == 0 { Code::Template(number) } else { Code::Native(number) };
    Ok(Func { code, env, home, this, extra, fields, lazy: bits & 2 != 0 })
}
