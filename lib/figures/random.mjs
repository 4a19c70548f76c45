// Random numbers from a seed: SplitMix64 (Steele, Lea and Flood 2014), uniform numbers
// from its upper 53 bits, normal ones by Box and Muller.

const WRAP = (1n << 64n) - 1n;

export const generator = (seed) => {
  let state = BigInt(seed) & WRAP;
  const bits = () => {
    state = (state + 0x9e3779b97f4a7c15n) & WRAP;
    let z = state;
    z = ((z ^ (z >> 30n)) * 0xbf58476d1ce4e5b9n) & WRAP;
    z = ((z ^ (z >> 27n)) * 0x94d049bb133111ebn) & WRAP;
    return z ^ (z >> 31n);
  };
  const uniform = () => Number(bits() >> 11n) / 2 ** 53; // 0 included, 1 not
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
  return { bits, uniform, normal };
};
