// Texts in the language of the page.
const { default: texts } = await import(document.documentElement.dataset.texts);

export const lang = document.documentElement.lang;

/**
 * The text of a key with its values filled in. `[one|many]` picks the form for the number before
 * it.
 */
export function say(key, values = {}) {
  const text = texts[key] ?? texts.other;
  let last = "";
  return text.replace(/\{(\w+)\}|\[([^|\]]*)\|([^\]]*)\]/g, (_, name, one, many) => {
    if (name === undefined) return last === "1" ? one : many;
    last = String(values[name] ?? "");
    return last;
  });
}

/** Whether the key has a text. */
export function has(key) {
  return Object.hasOwn(texts, key);
}

/** Formats a number. */
export function count(number) {
  return new Intl.NumberFormat(lang).format(number);
}

/** Formats an amount in won. */
export function won(amount) {
  return say("won", { amount: count(amount) });
}
