// The account page. It reloads after every change, so that it shows the stored state.
import { SIGNED_IN, call, memory } from "./api.js";
import { showEntries } from "./entries.js";
import { explain, onSubmit, tell, tellNext } from "./forms.js";
import { secondFactor } from "./second_factor.js";
import { say } from "./texts.js";

function done(key) {
  tellNext(key);
  location.reload();
}

function leave(key) {
  memory("localStorage").forget(SIGNED_IN);
  tellNext(key);
  location.assign("/");
}

onSubmit("profile", async ({ name, phone, language, marketing }) => {
  await call("PATCH", "/api/auth/me", { name, phone: phone.trim(), language, marketing });
  done("saved");
});

onSubmit("password", async ({ currentPassword, newPassword }) => {
  await call("POST", "/api/auth/password", { currentPassword, newPassword });
  done("password_changed");
});

onSubmit("linked", async ({ password = null }, button) => {
  if (button.name === "unlink") {
    await call("DELETE", `/api/auth/link/${button.value}`, { password });
    return done("unlinked");
  }
  const { body } = await call("POST", `/api/auth/link/${button.value}`, { password, returnTo: "/account" });
  if (body.location) location.assign(body.location);
  else done("saved");
});

onSubmit("sessions", async (_, button) => {
  if (button.name === "everywhere") {
    await call("POST", "/api/auth/logout", { everywhere: true });
    return leave("signed_out");
  }
  await call("DELETE", `/api/auth/sessions/${button.value}`);
  done("session_ended");
});

onSubmit("close", async ({ password = null }) => {
  await call("DELETE", "/api/auth/me", { password });
  leave("account_closed");
});

const send = document.querySelector("[data-send-verification]");
send?.addEventListener("click", async () => {
  send.disabled = true;
  try {
    await call("POST", "/api/auth/email/verification");
    tell(say("mail_sent"));
  } catch (error) {
    tell(explain(error));
    send.disabled = false;
  }
});

showEntries(document.querySelector("[data-my-entries]"), { problem: tell });
secondFactor();
