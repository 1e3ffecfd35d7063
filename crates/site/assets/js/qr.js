// QR codes (ISO/IEC 18004) of short texts: bytes, error correction level M, versions 1 to 15. Made here, so that a secret is drawn
// where it is needed and told to nobody.

/** Error correction bytes of each block, and blocks, of level M by version. */
const CORRECTION = [0, 10, 16, 26, 18, 24, 16, 18, 22, 22, 26, 30, 22, 22, 24, 24];
const BLOCKS = [0, 1, 1, 1, 2, 2, 4, 4, 4, 5, 5, 5, 8, 9, 9, 10];
/** The format bits of level M. */
const LEVEL = 0;
/** The quiet zone that readers need around a code. */
const MARGIN = 4;

function rawBits(version) {
  let bits = (16 * version + 128) * version + 64;
  if (version >= 2) {
    const marks = Math.floor(version / 7) + 2;
    bits -= (25 * marks - 10) * marks - 55;
    if (version >= 7) bits -= 36;
  }
  return bits;
}

function dataBytes(version) {
  return Math.floor(rawBits(version) / 8) - CORRECTION[version] * BLOCKS[version];
}

/** Multiplication in the field of 256 elements that the code calculates in. */
function times(a, b) {
  let product = 0;
  for (let bit = 7; bit >= 0; bit--) {
    product = (product << 1) ^ ((product >>> 7) * 0x11d);
    product ^= ((b >>> bit) & 1) * a;
  }
  return product;
}

function generator(degree) {
  const result = new Array(degree).fill(0);
  result[degree - 1] = 1;
  let root = 1;
  for (let round = 0; round < degree; round++) {
    for (let at = 0; at < degree; at++) {
      result[at] = times(result[at], root) ^ (result[at + 1] ?? 0);
    }
    root = times(root, 2);
  }
  return result;
}

function remainder(data, divisor) {
  const result = divisor.map(() => 0);
  for (const byte of data) {
    const factor = byte ^ result.shift();
    result.push(0);
    divisor.forEach((coefficient, at) => (result[at] ^= times(coefficient, factor)));
  }
  return result;
}

/** The text as bytes of a version that it fits into. */
function pack(text) {
  const bytes = [...new TextEncoder().encode(text)];
  const lengthBits = (version) => (version < 10 ? 8 : 16);
  let version = 1;
  while (dataBytes(version) * 8 < 4 + lengthBits(version) + bytes.length * 8) {
    if (++version >= CORRECTION.length) throw new RangeError("the text is too long for a code");
  }
  const bits = [];
  const add = (value, length) => {
    for (let at = length - 1; at >= 0; at--) bits.push((value >>> at) & 1);
  };
  add(4, 4);
  add(bytes.length, lengthBits(version));
  for (const byte of bytes) add(byte, 8);
  const room = dataBytes(version) * 8;
  add(0, Math.min(4, room - bits.length));
  add(0, (8 - (bits.length % 8)) % 8);
  for (let pad = 0xec; bits.length < room; pad ^= 0xec ^ 0x11) add(pad, 8);
  const packed = [];
  for (let at = 0; at < bits.length; at += 8) packed.push(parseInt(bits.slice(at, at + 8).join(""), 2));
  return { version, packed };
}

/** Data and correction of all blocks, one byte of each in turn. */
function interleave(version, packed) {
  const count = BLOCKS[version];
  const total = Math.floor(rawBits(version) / 8);
  const shorter = count - (total % count);
  const length = Math.floor(total / count) - CORRECTION[version];
  const divisor = generator(CORRECTION[version]);
  const blocks = [];
  for (let block = 0, at = 0; block < count; block++) {
    const data = packed.slice(at, (at += length + (block < shorter ? 0 : 1)));
    blocks.push({ data, correction: remainder(data, divisor) });
  }
  const turns = (part, most) => Array.from({ length: most }, (_, at) => blocks.map((block) => block[part][at])).flat();
  const all = [...turns("data", length + 1), ...turns("correction", CORRECTION[version])];
  return all.filter((byte) => byte !== undefined);
}

function alignment(version, size) {
  if (version === 1) return [];
  const count = Math.floor(version / 7) + 2;
  const gap = Math.ceil((version * 4 + 4) / (count * 2 - 2)) * 2;
  const places = [6];
  for (let at = size - 7; places.length < count; at -= gap) places.splice(1, 0, at);
  return places;
}

/** A square of modules: `dark[y][x]`, and which of them are not for data. */
function frame(version) {
  const size = version * 4 + 17;
  const grid = () => Array.from({ length: size }, () => new Array(size).fill(false));
  const code = { size, version, dark: grid(), fixed: grid() };
  const set = (x, y, dark) => {
    if (x < 0 || y < 0 || x >= size || y >= size) return;
    code.dark[y][x] = dark;
    code.fixed[y][x] = true;
  };
  code.set = set;
  for (let at = 0; at < size; at++) {
    set(6, at, at % 2 === 0);
    set(at, 6, at % 2 === 0);
  }
  for (const [cx, cy] of [[3, 3], [size - 4, 3], [3, size - 4]]) {
    for (let dy = -4; dy <= 4; dy++) {
      for (let dx = -4; dx <= 4; dx++) {
        const ring = Math.max(Math.abs(dx), Math.abs(dy));
        set(cx + dx, cy + dy, ring !== 2 && ring !== 4);
      }
    }
  }
  const places = alignment(version, size);
  const last = places.length - 1;
  places.forEach((cx, i) => places.forEach((cy, j) => {
    if ((i === 0 && j === 0) || (i === 0 && j === last) || (i === last && j === 0)) return;
    for (let dy = -2; dy <= 2; dy++) {
      for (let dx = -2; dx <= 2; dx++) set(cx + dx, cy + dy, Math.max(Math.abs(dx), Math.abs(dy)) !== 1);
    }
  }));
  return code;
}

function writeFormat(code, mask) {
  const data = (LEVEL << 3) | mask;
  let rest = data;
  for (let round = 0; round < 10; round++) rest = (rest << 1) ^ ((rest >>> 9) * 0x537);
  const bits = ((data << 10) | rest) ^ 0x5412;
  const bit = (at) => ((bits >>> at) & 1) === 1;
  const { size, set } = code;
  for (let at = 0; at <= 5; at++) set(8, at, bit(at));
  set(8, 7, bit(6));
  set(8, 8, bit(7));
  set(7, 8, bit(8));
  for (let at = 9; at < 15; at++) set(14 - at, 8, bit(at));
  for (let at = 0; at < 8; at++) set(size - 1 - at, 8, bit(at));
  for (let at = 8; at < 15; at++) set(8, size - 15 + at, bit(at));
  set(8, size - 8, true);
}

function writeVersion(code) {
  if (code.version < 7) return;
  let rest = code.version;
  for (let round = 0; round < 12; round++) rest = (rest << 1) ^ ((rest >>> 11) * 0x1f25);
  const bits = (code.version << 12) | rest;
  for (let at = 0; at < 18; at++) {
    const dark = ((bits >>> at) & 1) === 1;
    const [a, b] = [code.size - 11 + (at % 3), Math.floor(at / 3)];
    code.set(a, b, dark);
    code.set(b, a, dark);
  }
}

function writeData(code, bytes) {
  let at = 0;
  for (let right = code.size - 1; right >= 1; right -= 2) {
    if (right === 6) right = 5;
    for (let step = 0; step < code.size; step++) {
      const upward = ((right + 1) & 2) === 0;
      const y = upward ? code.size - 1 - step : step;
      for (const x of [right, right - 1]) {
        if (code.fixed[y][x] || at >= bytes.length * 8) continue;
        code.dark[y][x] = ((bytes[at >>> 3] >>> (7 - (at & 7))) & 1) === 1;
        at++;
      }
    }
  }
}

const MASKS = [
  (x, y) => (x + y) % 2 === 0,
  (_, y) => y % 2 === 0,
  (x) => x % 3 === 0,
  (x, y) => (x + y) % 3 === 0,
  (x, y) => (Math.floor(x / 3) + Math.floor(y / 2)) % 2 === 0,
  (x, y) => ((x * y) % 2) + ((x * y) % 3) === 0,
  (x, y) => (((x * y) % 2) + ((x * y) % 3)) % 2 === 0,
  (x, y) => (((x + y) % 2) + ((x * y) % 3)) % 2 === 0,
];

function turnOver(code, mask) {
  for (let y = 0; y < code.size; y++) {
    for (let x = 0; x < code.size; x++) {
      if (!code.fixed[y][x] && MASKS[mask](x, y)) code.dark[y][x] = !code.dark[y][x];
    }
  }
}

/** How hard a code is to read: long runs, large blocks, much more of one colour. */
function difficulty({ size, dark }) {
  let points = 0;
  let total = 0;
  for (let a = 0; a < size; a++) {
    for (const at of [(b) => dark[a][b], (b) => dark[b][a]]) {
      for (let b = 1, run = 1; b <= size; b++) {
        if (b < size && at(b) === at(b - 1)) run++;
        else {
          if (run >= 5) points += run - 2;
          run = 1;
        }
      }
    }
    for (let b = 0; b < size; b++) {
      total += dark[a][b];
      const block = a && b && dark[a][b] === dark[a - 1][b] && dark[a][b] === dark[a][b - 1];
      if (block && dark[a][b] === dark[a - 1][b - 1]) points += 3;
    }
  }
  return points + Math.floor(Math.abs((total * 20) / (size * size) - 10)) * 10;
}

/** The code of a text as rows of dark modules. */
export function encode(text) {
  const { version, packed } = pack(text);
  const code = frame(version);
  writeFormat(code, 0);
  writeVersion(code);
  writeData(code, interleave(version, packed));
  const tried = MASKS.map((_, mask) => {
    turnOver(code, mask);
    writeFormat(code, mask);
    const points = difficulty(code);
    turnOver(code, mask);
    return points;
  });
  const mask = tried.indexOf(Math.min(...tried));
  turnOver(code, mask);
  writeFormat(code, mask);
  return code.dark;
}

/** Draws the code of a text into an SVG element. */
export function draw(svg, text) {
  const rows = encode(text);
  const side = rows.length + MARGIN * 2;
  const path = document.createElementNS(svg.namespaceURI, "path");
  const squares = rows.flatMap((row, y) => row.map((dark, x) => (dark ? `M${x + MARGIN} ${y + MARGIN}h1v1h-1z` : "")));
  path.setAttribute("d", squares.join(""));
  path.setAttribute("fill", "#000");
  svg.setAttribute("viewBox", `0 0 ${side} ${side}`);
  svg.setAttribute("shape-rendering", "crispEdges");
  svg.replaceChildren(path);
}
