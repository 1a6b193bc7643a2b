// SPDX-License-Identifier: Apache-2.0
// What sdk3.mjs, sdk2.mjs and bun.mjs share: steps that all run, each with its name and its result, and the settings from the environment
// (URL_S3, AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY; SIGV2 is "presigned" where the server takes such URLs).
import assert from "node:assert/strict";
import { request } from "node:http";

export const endpoint = process.env.URL_S3;
export const credentials = { accessKeyId: process.env.AWS_ACCESS_KEY_ID, secretAccessKey: process.env.AWS_SECRET_ACCESS_KEY };
export const sigv2 = process.env.SIGV2 === "presigned";

const steps = [];
export const step = (name, what) => steps.push([name, what]);

// Runs all steps in their order, and ends the program: connections whose answer nobody read would keep it. The exit status is 1 if one failed.
export const run = async (client) => {
  let failed = 0;
  for (const [name, what] of steps) {
    try {
      await what();
      console.log(`ok    ${client}: ${name}`);
    } catch (e) {
      const where = e.stack?.split("\n").filter((line) => line.includes(`/${client}.mjs:`)) ?? [];
      console.log(`FAIL  ${client}: ${name}: ${[`${e.name}: ${e.message}`, ...where].join("\n")}`);
      failed = 1;
    }
  }
  process.exit(failed);
};

// fetch, which must be answered with that status: the text of the answer, and its headers by name.
export const fetched = async (url, options, status) => {
  const answer = await fetch(url, { redirect: "manual", ...options });
  const text = await answer.text();
  assert.equal(answer.status, status, `${options?.method ?? "GET"} ${url}: ${answer.status}, not ${status}: ${text}`);
  return { text, headers: answer.headers };
};

// A request whose headers are sent as they are given, a list as several lines, and whose answer has the names as they came.
export const raw = (url, { method = "GET", headers = {}, body } = {}) => new Promise((resolve, reject) => {
  const sent = request(url, { method, headers }, (answer) => {
    const got = [];
    answer.on("data", (d) => got.push(d)).on("error", reject);
    answer.on("end", () => resolve({ status: answer.statusCode, lines: answer.rawHeaders, headers: answer.headers, text: String(Buffer.concat(got)) }));
  });
  sent.on("error", reject).end(body);
});

// The text that a header's value of encoded words (RFC 2047) stands for; the value must be ASCII, its words of 75 characters at most.
export const decoded = (value) => {
  assert.match(value, /^[\x20-\x7e]*$/, `not ASCII: ${value}`);
  const words = value.split(/ +/).map((word) => {
    const [, kind, text] = /^=\?utf-8\?([bq])\?([^?]*)\?=$/i.exec(word) ?? assert.fail(`no encoded word: ${word}`);
    assert(word.length <= 75, `a word of ${word.length} characters`);
    return kind.toLowerCase() === "b" ? Buffer.from(text, "base64")
      : Buffer.from(text.replaceAll("_", " ").replace(/=([0-9A-F]{2})/gi, (_, hex) => String.fromCharCode(parseInt(hex, 16))), "latin1");
  });
  return String(Buffer.concat(words));
};

// A form as a page sends it: the fields of a signed policy, then the file.
export const form = (fields, body, filename, type) => {
  const data = new FormData();
  for (const [name, value] of Object.entries(fields)) data.append(name, value);
  data.append("file", new Blob([body], type ? { type } : {}), filename);
  return { method: "POST", body: data };
};

// The URL with another signature of the same form, and with one that is cut short.
const signature = /([?&](?:X-Amz-)?Signature=)(.)/;
export const tampered = (url) => url.replace(signature, (_, name, first) => name + (first === "1" ? "2" : "1"));
export const cut = (url) => url.replace(/([?&](?:X-Amz-)?Signature=)[^&]*/, "$1abc");
