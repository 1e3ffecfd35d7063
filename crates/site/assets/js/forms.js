// Forms that call the API: errors of a field are shown next to it, all others above the form.
import { Refused, memory } from "./api.js";
import { has, lang, say } from "./texts.js";

/**
 * Submits a form with `act(values, button, form)`. Does nothing if the form is not on this page.
 */
export function onSubmit(name, act) {
  const form = document.querySelector(`form[data-form="${name}"]`);
  if (!form) return;
  enable(form, true);
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    if (form.getAttribute("aria-busy") === "true") return;
    clear(form);
    if (!isComplete(form)) return;
    form.setAttribute("aria-busy", "true");
    try {
      await act(values(form), event.submitter, form);
    } catch (error) {
      show(form, error);
    } finally {
      form.removeAttribute("aria-busy");
    }
  });
}

export function enable(form, whether) {
  for (const button of form.querySelectorAll("button:not(.reveal)")) button.disabled = !whether;
}

function values(form) {
  const inputs = [...form.elements].filter((input) => input.name && input.tagName !== "BUTTON");
  return Object.fromEntries(inputs.map((input) => [input.name, input.type === "checkbox" ? input.checked : input.value]));
}

function isComplete(form) {
  const wrong = [...form.elements].filter((input) => input.willValidate && !input.validity.valid);
  for (const input of wrong) mark(input, reason(input));
  wrong[0]?.focus();
  return wrong.length === 0;
}

function reason(input) {
  if (input.type === "checkbox") return say("agree_first");
  if (input.validity.valueMissing) return say("field_required");
  if (input.type === "email") return say("field_email");
  return input.type === "password" || input.autocomplete.includes("password") ? say("invalid_password") : say("auth.invalid");
}

/** Shows the error of a field next to it. */
function mark(input, text) {
  const id = `${input.id || input.name}-wrong`;
  const note = Object.assign(document.createElement("p"), { className: "field-error", id, textContent: text });
  input.setAttribute("aria-invalid", "true");
  const described = [input.getAttribute("aria-describedby"), id].filter(Boolean).join(" ");
  input.dataset.described = input.getAttribute("aria-describedby") ?? "";
  input.setAttribute("aria-describedby", described);
  (input.closest(".check, .reveal-box") ?? input).after(note);
}

function clear(form) {
  for (const note of form.querySelectorAll(".field-error")) note.remove();
  for (const input of form.querySelectorAll("[aria-invalid]")) {
    input.removeAttribute("aria-invalid");
    if (input.dataset.described) input.setAttribute("aria-describedby", input.dataset.described);
    else input.removeAttribute("aria-describedby");
  }
  const problem = form.querySelector("[data-problem]");
  problem.hidden = true;
  problem.textContent = "";
}

/** The message for an error. */
export function explain(error) {
  if (!(error instanceof Refused)) {
    console.error(error);
    return say("other");
  }
  const sentence = has(error.code) ? say(error.code) : say("other");
  const wait = error.retryAfter;
  return wait > 0 ? `${sentence} ${say("wait", { seconds: wait })}` : sentence;
}

/** Shows an error in its place, and disables the form until `retryAfter`. */
export function show(form, error) {
  const field = error.code === "auth.invalid" ? fieldOf(form, error.body.field) : null;
  if (field) {
    const known = `invalid_${error.body.field}`;
    mark(field, lang === "en" || !has(known) ? error.body.reason : say(known));
    field.focus();
    return;
  }
  const problem = form.querySelector("[data-problem]");
  problem.textContent = explain(error);
  problem.hidden = false;
  const wait = error.retryAfter ?? 0;
  if (wait > 0) {
    enable(form, false);
    setTimeout(() => enable(form, true), wait * 1_000);
  }
}

/** With two password fields, an error about the password belongs to the new one. */
function fieldOf(form, name = "") {
  const inputs = [...form.elements].filter((input) => input.tagName === "INPUT" && !input.readOnly);
  return inputs.find((input) => input.name === name) ?? inputs.find((input) => input.name.toLowerCase() === `new${name}`);
}

/** Shows one step of a page and hides the others. */
export function step(name) {
  for (const section of document.querySelectorAll("[data-step]")) section.hidden = section.dataset.step !== name;
  document.querySelector(`[data-step="${name}"] [tabindex="-1"]`)?.focus();
}

/** Adds a button that shows the typed password. */
function offerToShow(input) {
  const button = Object.assign(document.createElement("button"), { type: "button", className: "reveal" });
  const label = (key) => Object.assign(button, { ariaLabel: say(key), title: say(key) });
  const box = Object.assign(document.createElement("div"), { className: "reveal-box" });
  input.replaceWith(box);
  box.append(input, button);
  label("show_password");
  button.ariaPressed = "false";
  button.addEventListener("click", () => {
    const hidden = input.type === "password";
    input.type = hidden ? "text" : "password";
    button.ariaPressed = String(hidden);
    label(hidden ? "hide_password" : "show_password");
  });
}

for (const input of document.querySelectorAll('.field input[type="password"]')) offerToShow(input);

const FLASH = "urr-flash";

/** Shows a message on the next page, or on this one after a reload. */
export function tellNext(key) {
  memory("sessionStorage").set(FLASH, key);
}

/** Shows a message now, without moving the focus. */
export function tell(text) {
  const toast = document.getElementById("toast");
  toast.className = "toast";
  toast.textContent = text;
  setTimeout(() => {
    toast.className = "";
    toast.textContent = "";
  }, 6_000);
}

export function tellWhatWasLeft() {
  const store = memory("sessionStorage");
  const key = store.get(FLASH);
  store.forget(FLASH);
  if (key && has(key)) tell(say(key));
}

/** The secret from the URL, as `carry.js` stored it. */
export function carried(name) {
  return history.state?.carried?.[name] ?? null;
}

/** Deletes the secret: it was used, or is invalid. */
export function dropCarried() {
  history.replaceState(null, "", location.pathname + location.search);
}
