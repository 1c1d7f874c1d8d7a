// `ArrayBuffer` and `DataView`, ECMA-262 25.1 and 25.3.

function OutOfBounds() { $typeError("Cannot perform the operation on a detached or out-of-bounds buffer"); }

// The length in bytes; -1 if it is detached.
function LengthOfBuffer(value, method) {
  const length = $bufferLength(value);
  if (length === undefined) $typeError("Method ArrayBuffer.prototype." + method + " called on incompatible receiver " + $shown(value));
  return length;
}

function LiveLength(value, method) {
  const length = LengthOfBuffer(value, method);
  if (length < 0) $typeError("Cannot perform ArrayBuffer.prototype." + method + " on a detached ArrayBuffer");
  return length;
}

function ArrayBuffer_(length, options = undefined) {
  if (new.target === undefined) $typeError("Constructor ArrayBuffer requires 'new'");
  const size = $toIndex(length, "array buffer length");
  let max = $isObject(options) ? options.maxByteLength : undefined;
  if (max !== undefined) {
    max = $toIndex(max, "array buffer max length");
    if (size > max) $rangeError("Invalid array buffer max length");
  }
  return $bufferNew(ProtoFor(new.target, $$ARRAY_BUFFER_PROTO), size, max);
}

const ArrayBufferStatics = {
  isView(arg) { return $isView(arg); },
  get [$$SYM_SPECIES]() { return this; },
};

function TransferBuffer(buffer, length, fixed, method) {
  LengthOfBuffer(buffer, method);
  const size = length === undefined ? $bufferLength(buffer) : $toIndex(length, "array buffer length");
  LiveLength(buffer, method);
  return $bufferTransfer(buffer, size, fixed ? undefined : $bufferMax(buffer));
}

const ArrayBufferPrototype = {
  get byteLength() {
    const length = LengthOfBuffer(this, "byteLength");
    return length < 0 ? 0 : length;
  },
  get maxByteLength() {
    const length = LengthOfBuffer(this, "maxByteLength");
    if (length < 0) return 0;
    const max = $bufferMax(this);
    return max === undefined ? length : max;
  },
  get resizable() {
    LengthOfBuffer(this, "resizable");
    return $bufferMax(this) !== undefined;
  },
  get detached() { return LengthOfBuffer(this, "detached") < 0; },
  slice(start, end) {
    const length = LiveLength(this, "slice");
    const first = RelativeIndex(start, length, 0);
    const final = RelativeIndex(end, length, length);
    const size = final > first ? final - first : 0;
    const C = SpeciesConstructor(this, $$ARRAY_BUFFER);
    const made = new C(size);
    const space = LiveLength(made, "slice");
    if (made === this) $typeError("ArrayBuffer subclass returned this from species constructor");
    if (space < size) $typeError("Species constructor returned a too small ArrayBuffer");
    const now = LiveLength(this, "slice");
    if (first < now) $bytesCopy(made, 0, this, first, now - first < size ? now - first : size);
    return made;
  },
  resize(newLength) {
    LengthOfBuffer(this, "resize");
    const max = $bufferMax(this);
    if (max === undefined) $typeError("Method ArrayBuffer.prototype.resize called on a buffer that is not resizable");
    const length = $toIndex(newLength, "array buffer length");
    LiveLength(this, "resize");
    if (length > max) $rangeError("ArrayBuffer.prototype.resize: Invalid length parameter");
    $bufferResize(this, length);
  },
  transfer(newLength = undefined) { return TransferBuffer(this, newLength, false, "transfer"); },
  transferToFixedLength(newLength = undefined) { return TransferBuffer(this, newLength, true, "transferToFixedLength"); },
};

function DataView_(buffer, byteOffset = undefined, byteLength = undefined) {
  if (new.target === undefined) $typeError("Constructor DataView requires 'new'");
  if ($bufferLength(buffer) === undefined) $typeError("First argument to DataView constructor must be an ArrayBuffer");
  const offset = $toIndex(byteOffset, "offset");
  if ($bufferLength(buffer) < 0) OutOfBounds();
  if (offset > $bufferLength(buffer)) $rangeError("Start offset " + offset + " is outside the bounds of the buffer");
  let length;
  if (byteLength !== undefined) {
    length = $toIndex(byteLength, "DataView length");
    if (offset + length > $bufferLength(buffer)) $rangeError("Invalid DataView length " + length);
  } else if ($bufferMax(buffer) === undefined) {
    length = $bufferLength(buffer) - offset;
  }
  const proto = ProtoFor(new.target, $$DATA_VIEW_PROTO);
  const now = $bufferLength(buffer);
  if (now < 0) OutOfBounds();
  if (offset > now || (byteLength !== undefined && offset + length > now)) $rangeError("Invalid DataView length");
  return $viewNew(-1, proto, buffer, offset, length);
}

// The length in bytes; -1 if the view is out of bounds.
function LengthOfDataView(value, method) {
  if (!$isDataView(value)) $typeError("Method DataView.prototype." + method + " called on incompatible receiver " + $shown(value));
  return $viewCount(value);
}

const DataViewPrototype = {
  get buffer() {
    LengthOfDataView(this, "buffer");
    return $viewBuffer(this);
  },
  get byteLength() {
    const length = LengthOfDataView(this, "byteLength");
    if (length < 0) OutOfBounds();
    return length;
  },
  get byteOffset() {
    if (LengthOfDataView(this, "byteOffset") < 0) OutOfBounds();
    return $viewOffset(this);
  },
};
