// Texts in the language of the page.
const { default: texts } = await import(document.documentElement.dataset.texts);

export const lang = document.documentElement.lang;

/** The text of a key, with values in its braces. `[one|many]` is the form that fits the number before it. */
export function say(key, values = {}) {
  const text = texts[key] ?? texts.other;
  let last = "";
  return text.replace(/\{(\w+)\}|\[([^|\]]*)\|([^\]]*)\]/g, (_, name, one, many) => {
    if (name === undefined) return last === "1" ? one : many;
    last = String(values[name] ?? "");
    return last;
  });
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
