// Registration, with a password or with an account of a provider.
import { SIGNED_IN, call, memory } from "./api.js";
import { enable, onSubmit, show, tellNext } from "./forms.js";

const KINDS = ["SERVICE", "PRIVACY", "MARKETING"];

function agreements(values) {
  return KINDS.map((type) => ({ type, agreed: values[type] }));
}

function enter(form) {
  memory("localStorage").set(SIGNED_IN, "1");
  tellNext("mail_sent");
  location.assign(form.dataset.next);
}

const language = document.documentElement.lang;

onSubmit("register", async (values, _, form) => {
  const { email, password, name, phone } = values;
  const body = { email, password, name, phone: phone.trim() || null, agreements: agreements(values), language };
  await call("POST", "/api/auth/register", body);
  enter(form);
});

onSubmit("finish", async (values, _, form) => {
  const { email, name } = values;
  const vouched = form.elements.email.readOnly;
  const body = { email: vouched ? null : email, name, agreements: agreements(values), language };
  const { status, body: answer } = await call("POST", "/api/auth/sign-up", body);
  if (status === 202) {
    const next = encodeURIComponent(form.dataset.next);
    location.assign(`/login?next=${next}#challenge=${encodeURIComponent(answer.challenge)}`);
    return;
  }
  enter(form);
});

/** Fills in what the provider returned, so that the user need not type it. */
async function fillIn(form) {
  try {
    const { body } = await call("GET", "/api/auth/sign-up");
    form.elements.name.value = body.name ?? "";
    form.elements.email.value = body.email ?? "";
    form.elements.email.readOnly = Boolean(body.email && body.emailVerified);
  } catch (error) {
    show(form, error);
    enable(form, false);
  }
}

const agreed = [...document.querySelectorAll("[data-agreement]")];
const all = document.querySelector("[data-agree-all]");
all.closest("label").hidden = false;
all.addEventListener("change", () => agreed.forEach((box) => (box.checked = all.checked)));
for (const box of agreed) box.addEventListener("change", () => (all.checked = agreed.every((one) => one.checked)));

const finishing = document.querySelector('form[data-form="finish"]');
if (finishing) fillIn(finishing);
