// Texts in the language of the page.
const { default: texts } = await import(document.documentElement.dataset.texts);

export const lang = document.documentElement.lang;

/** The text of a key, with what belongs in its braces. */
export function say(key, values = {}) {
  const text = texts[key] ?? texts.other;
  return text.replace(/\{(\w+)\}/g, (_, name) => String(values[name] ?? ""));
}

/** Whether there is a text of this key. */
export function has(key) {
  return Object.hasOwn(texts, key);
}

/** A number as people write it. */
export function count(number) {
  return new Intl.NumberFormat(lang).format(number);
}

/** Won, as prices are written. */
export function won(amount) {
  return say("won", { amount: count(amount) });
}
