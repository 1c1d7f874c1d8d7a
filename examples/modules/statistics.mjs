// Small statistics over lists of numbers.
export function percentile(numbers, share) {
  if (numbers.length === 0) throw new RangeError('no numbers');
  const sorted = [...numbers].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))];
}

export const median = (numbers) => percentile(numbers, 0.5);
