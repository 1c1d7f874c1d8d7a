// Has ended with an exception.
function inner() { throw new RangeError('too far'); }
function main() { CC('before it fails'); inner(); }
