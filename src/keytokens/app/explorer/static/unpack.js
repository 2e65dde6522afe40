// The container that keytokens/app/explorer/pack.py writes: gzip of
//   length of the header (uint32) | header (JSON, UTF-8) | arrays, one after the other
// The header is {"facts": ..., "arrays": [{"name", "type", "shape"}]}. Arrays are little-endian and stored in
// planes (all first bytes, then all second bytes, ...), which compresses better.

const TYPES = { f4: Float32Array, f8: Float64Array, u1: Uint8Array, u2: Uint16Array, u4: Uint32Array, i4: Int32Array };

/** {facts, arrays: {name: typed array}} from the bytes of a container. */
export async function unpack(bytes) {
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  const buffer = await new Response(stream).arrayBuffer();
  const size = new DataView(buffer).getUint32(0, true);
  const header = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, size)));
  const arrays = {};
  let at = 4 + size;
  for (const { name, type, shape } of header.arrays) {
    const length = shape.reduce((product, n) => product * n, 1);
    const width = TYPES[type].BYTES_PER_ELEMENT;
    arrays[name] = unplaned(new Uint8Array(buffer, at, length * width), TYPES[type], length, width);
    at += length * width;
  }
  return { facts: header.facts, arrays };
}

function unplaned(bytes, Type, length, width) {
  const mixed = new Uint8Array(length * width);
  for (let plane = 0; plane < width; plane++) {
    const from = plane * length;
    for (let i = 0, to = plane; i < length; i++, to += width) mixed[to] = bytes[from + i];
  }
  return new Type(mixed.buffer);
}

/** Bytes from base64. */
export function fromBase64(text) {
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(text);
  const letters = atob(text.trim());
  const bytes = new Uint8Array(letters.length);
  for (let i = 0; i < letters.length; i++) bytes[i] = letters.charCodeAt(i);
  return bytes;
}
