/* Prompts of conversations, by the chat template of a model's folder. */
#ifndef SES_SERVE_CHAT_PROMPT_H
#define SES_SERVE_CHAT_PROMPT_H

#include "serve/job.h"

/* The model generates text, and its folder has a chat template. */
bool ses_served_model_chats(const ses_served_model *m);
/* Chooses the model of a conversation: name NULL or "": the first with a chat template. */
bool ses_chat_find_model(ses_worker *w, ses_job *j, const char *name);
/* The prompt for {"messages": [{"role", "content"}]}, in the job's memory. The job has a pipeline. */
bool ses_chat_prompt(ses_worker *w, ses_job *j, ses_string *out);

#endif
