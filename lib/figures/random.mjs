// Random numbers from a seed: SplitMix64 (Steele, Lea and Flood 2014) in halves of 32
// bits, uniform numbers from its upper 53 bits, normal ones by Box and Muller, chi-square
// ones by Marsaglia and Tsang (2000).

export const generator = (seed) => {
  // The state and the last output, lower half first.
  const state = Uint32Array.of(Number(BigInt.asUintN(32, BigInt(seed))), Number(BigInt.asUintN(64, BigInt(seed)) >> 32n));
  const out = new Uint32Array(2);
  // out = (out ^ (out >> shift)) times a number modulo 2^64.
  const mix = (shift, high, low) => {
    const a = out[0] ^ ((out[0] >>> shift) | (out[1] << (32 - shift)));
    const b = out[1] ^ (out[1] >>> shift);
    // The upper half of a times low, from products of 16 bits.
    const a0 = a & 0xffff, a1 = a >>> 16, c0 = low & 0xffff, c1 = low >>> 16;
    const first = (Math.imul(a1, c0) >>> 0) + (Math.imul(a0, c0) >>> 16);
    const second = (Math.imul(a0, c1) >>> 0) + (first & 0xffff);
    const upper = (Math.imul(a1, c1) + (first >>> 16) + (second >>> 16)) | 0;
    out[0] = Math.imul(a, low);
    out[1] = (upper + Math.imul(a, high) + Math.imul(b, low)) | 0;
  };
  const next = () => {
    const low = state[0] + 0x7f4a7c15;
    state[0] = low;
    state[1] += 0x9e3779b9 + (low > 0xffffffff);
    out[0] = state[0];
    out[1] = state[1];
    mix(30, 0xbf58476d, 0x1ce4e5b9);
    mix(27, 0x94d049bb, 0x133111eb);
    const a = out[0], b = out[1];
    out[0] = a ^ ((a >>> 31) | (b << 1));
    out[1] = b ^ (b >>> 31);
  };
  const bits = () => {
    next();
    return (BigInt(out[1]) << 32n) | BigInt(out[0]);
  };
  const uniform = () => {
    next();
    return (out[1] * 2 ** 21 + (out[0] >>> 11)) / 2 ** 53; // 0 included, 1 not
  };
  let spare = null;
  const normal = () => {
    if (spare !== null) {
      const kept = spare;
      spare = null;
      return kept;
    }
    const radius = Math.sqrt(-2 * Math.log(1 - uniform()));
    const angle = 2 * Math.PI * uniform();
    spare = radius * Math.sin(angle);
    return radius * Math.cos(angle);
  };
  // Twice a gamma variable of half the degrees of freedom, which are positive.
  const chiSquare = (degrees) => {
    if (degrees < 2) return chiSquare(degrees + 2) * (1 - uniform()) ** (2 / degrees);
    const d = degrees / 2 - 1 / 3;
    const c = 1 / Math.sqrt(9 * d);
    for (;;) {
      const x = normal();
      const v = (1 + c * x) ** 3;
      if (v <= 0) continue;
      const u = 1 - uniform();
      // The first bound spares most draws the logarithms.
      if (u < 1 - 0.0331 * x ** 4 || Math.log(u) < (x * x) / 2 + d * (1 - v + Math.log(v))) return 2 * d * v;
    }
  };
  return { bits, uniform, normal, chiSquare };
};
