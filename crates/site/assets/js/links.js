// The pages of mailed links. Opening a link changes nothing; its button does.
import { call } from "./api.js";
import { carried, dropCarried, onSubmit, step } from "./forms.js";

const token = carried("token");

onSubmit("forgot", async ({ email }) => {
  await call("POST", "/api/auth/password/forgot", { email });
  step("done");
});

onSubmit("reset", async ({ password }) => {
  await call("POST", "/api/auth/password/reset", { token, password });
  dropCarried();
  step("done");
});

onSubmit("verify", async ({ password }, _button, form) => {
  try {
    await call("POST", "/api/auth/email/verify", { token, password });
  } catch (error) {
    // A mailed link is not proof enough: a browser that is not signed in must send the password
    // too.
    if (error.code === "auth.proof_required") askForPassword(form);
    throw error;
  }
  dropCarried();
  step("done");
});

function askForPassword(form) {
  form.querySelector("[data-proof]").hidden = false;
  form.elements.password.disabled = false;
}

if (!token && document.querySelector('[data-step="missing"]')) step("missing");
