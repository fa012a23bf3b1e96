/* Each PTX file of the command line parses whole, with no form unknown, and its dump says the same again. */
#include "check.h"

static void count_unsupported(const char *path, const ptx_module *module)
{
    for (uint32_t i = 0; i < module->function_count; i++) {
        const ptx_function *function = module->functions[i];
        for (uint32_t j = 0; j < function->instruction_count; j++) {
            if (function->instructions[j].op != PTX_OP_UNSUPPORTED)
                continue;
            failures++;
            printf("%s:%u: unsupported: %s\n", path, function->instructions[j].line,
                   function->instructions[j].mnemonic->spelling);
        }
    }
}

/* What must hold of any function that was parsed. */
static void check_function(const char *path, const ptx_function *function)
{
    uint32_t covered = 0;
    for (uint32_t i = 0; i < function->block_count; i++) {
        const ptx_block *block = &function->blocks[i];
        EXPECT_EQUAL(covered, block->first);
        EXPECT(block->end > block->first && block->order < function->block_count);
        for (uint32_t j = 0; j < block->successor_count; j++)
            EXPECT(block->successors[j] < function->block_count);
        covered = block->end;
    }
    EXPECT_EQUAL(function->instruction_count, covered);
    for (uint32_t i = 0; i < function->instruction_count; i++) {
        const ptx_instruction *instruction = &function->instructions[i];
        for (uint8_t j = 0; j < instruction->operand_count; j++) {
            const ptx_operand *operand = &instruction->operands[j];
            const bool has_register = operand->kind == PTX_OPERAND_REGISTER;
            if (operand->reg != PTX_NO_REGISTER ? operand->reg >= function->register_count : has_register) {
                failures++;
                printf("%s:%u: operand %d: register %u of %u\n", path, instruction->line, j, operand->reg,
                       function->register_count);
            }
        }
    }
}

static void check_file(const char *path)
{
    size_t length;
    ptx_error error;
    char *text = read_file(path, &length);
    ptx_module *module = parse_bytes(text, length, &error);
    free(text);
    if (module == NULL) {
        failures++;
        printf("%s:%u:%u: %s\n%s\n", path, error.line, error.column, error.message, error.excerpt);
        return;
    }
    count_unsupported(path, module);
    for (uint32_t i = 0; i < module->function_count; i++)
        check_function(path, module->functions[i]);
    char *once = ptx_dump(module);
    ptx_module *again = once == NULL ? NULL : parse_bytes(once, strlen(once), &error);
    char *twice = again == NULL ? NULL : ptx_dump(again);
    if (twice == NULL || strcmp(once, twice) != 0) {
        failures++;
        printf("%s: its dump %s\n%u:%u: %s\n%s\n", path, twice == NULL ? "does not parse" : "changes when parsed",
               error.line, error.column, error.message, error.excerpt);
    } else {
        EXPECT_EQUAL(module->function_count, again->function_count);
        EXPECT_EQUAL(module->variable_count, again->variable_count);
        EXPECT_EQUAL(module->mnemonic_count, again->mnemonic_count);
    }
    free(once);
    free(twice);
    ptx_module_free(again);
    ptx_module_free(module);
}

int main(int count, char **paths)
{
    for (int i = 1; i < count; i++)
        check_file(paths[i]);
    EXPECT(count > 1);
    return report();
}
